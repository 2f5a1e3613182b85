"""What differs by producer: processes and threads that tell the role of events, and options that record more."""
