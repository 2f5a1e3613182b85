"""Communication operations of one rank: their events, names, process groups, and sizes."""
