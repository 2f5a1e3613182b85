"""The Model Context Protocol: the answers of the command line as tools for a coding agent."""
