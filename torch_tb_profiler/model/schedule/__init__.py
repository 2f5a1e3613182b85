"""The schedule of a trace: what each piece of work waits for, as a graph of columns."""
