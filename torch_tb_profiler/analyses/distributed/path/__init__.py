"""The critical path of a job, from what each rank's trace contributes to it."""
