"""What several analyses build on: step breakdown, grouping, stacks, statistics."""
