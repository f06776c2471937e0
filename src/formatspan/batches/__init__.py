"""The other way to ask: batches of a file's worth, cheaper and later."""
