"""What to change first."""
