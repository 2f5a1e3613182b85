"""Costs of operators: floating-point operations and bytes of one call, from what a trace records of its inputs."""
