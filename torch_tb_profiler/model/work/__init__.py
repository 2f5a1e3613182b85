"""Work of operators: floating-point operations and bytes of memory, from what a trace records of their inputs."""
