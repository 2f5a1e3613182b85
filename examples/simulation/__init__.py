"""A job of many GPUs as a trace shows it, computed by a simple model: for machines that have none."""
