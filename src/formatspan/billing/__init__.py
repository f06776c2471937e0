"""``formatspan plan``: what a study would ask, cost and take; nothing is asked."""
