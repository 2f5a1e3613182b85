"""What devices file under the categories of a trace, where names of processes and threads tell."""
