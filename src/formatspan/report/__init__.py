"""Reports: how an analysis is shown."""
