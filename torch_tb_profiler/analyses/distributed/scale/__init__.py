"""A job of any number of ranks in a bounded number of figures."""
