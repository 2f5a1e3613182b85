"""The ranks of a distributed job compared: collectives, waiting, stragglers, and the critical path of the job."""
