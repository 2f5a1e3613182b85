"""Which operations of different ranks are one collective."""
