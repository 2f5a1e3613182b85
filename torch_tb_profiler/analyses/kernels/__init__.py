"""The kernel table, and the engines of a Gaudi card."""
