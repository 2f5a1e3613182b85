"""The native reader of flight recorders: plain C (`native/recorder.c`), loaded with ctypes."""
