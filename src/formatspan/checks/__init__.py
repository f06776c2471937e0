"""Looks at models before they are asked."""
