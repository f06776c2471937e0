"""Measures how far the formatting shell around a question moves a model's score."""
