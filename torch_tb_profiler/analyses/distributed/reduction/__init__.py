"""What one rank's trace is reduced to, so that a job of N ranks costs N small summaries."""
