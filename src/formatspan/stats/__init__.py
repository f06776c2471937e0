"""Statistics on arrays: NumPy and SciPy only, no input or output, randomness by explicit rng."""
