"""Communication operations of one rank: events, names, groups, sizes."""
