"""What a CUDA memory snapshot says: state, history, live memory, failures."""
