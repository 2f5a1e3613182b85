"""What holds memory, when, and what grows."""
