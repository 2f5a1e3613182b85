"""Where every event stands: tracks, lanes, neighbors, flows."""
