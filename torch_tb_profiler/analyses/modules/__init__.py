"""Times, calls and flame graph of the modules of a model."""
