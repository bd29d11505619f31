"""Controls that may be anything within bounds: what acting between the listed ones is worth."""
