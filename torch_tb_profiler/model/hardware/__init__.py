"""What accelerators can do at most, and which one a trace was recorded on."""
