"""Tasks: where the questions come from."""
