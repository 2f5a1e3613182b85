"""How much communication computation hides, from the busy times of streams per iteration."""
