"""What the importers of tools that sample GPUs share."""
