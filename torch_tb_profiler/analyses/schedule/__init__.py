"""The schedule of a trace: idle gaps and their causes, the critical path, and what-if replays."""
