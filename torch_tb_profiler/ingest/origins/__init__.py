"""Files beside a trace that say where its kernels come from: compile records, launch stacks, graph annotations."""
