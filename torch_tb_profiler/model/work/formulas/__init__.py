"""What an operator computes and moves, by its name: one function per family, of a recorded call to its cost."""
