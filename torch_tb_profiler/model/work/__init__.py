"""Work of a trace: FLOPs and bytes of every call that owns device work, and its roofline."""
