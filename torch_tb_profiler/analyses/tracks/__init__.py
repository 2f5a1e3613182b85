"""Where every event of a trace is drawn: tracks, lanes, neighbors, flows."""
