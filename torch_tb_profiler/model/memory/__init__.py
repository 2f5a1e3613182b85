"""What allocators recorded: events, blocks, snapshots, exported timelines."""
