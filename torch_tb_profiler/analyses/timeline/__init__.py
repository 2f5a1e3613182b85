"""What the timeline shows of the tracks: level of detail, counters, search, selections."""
