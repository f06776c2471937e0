"""Figures: data apart from drawing, one table of them all."""
