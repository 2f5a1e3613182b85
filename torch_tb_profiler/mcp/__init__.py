"""The Model Context Protocol: what the command line answers, as tools of a coding agent."""
