"""Launch calls, queues, copies, and repeated sequences of device work."""
