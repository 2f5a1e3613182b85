"""The native reader of memory snapshots: plain C (`native/snapshot.c`), loaded with ctypes."""
