"""A trace as typed columns, and the tables that pure functions derive from it."""
