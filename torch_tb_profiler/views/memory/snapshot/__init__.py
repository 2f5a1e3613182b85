"""The parts of the Memory tab that show CUDA memory snapshots."""
