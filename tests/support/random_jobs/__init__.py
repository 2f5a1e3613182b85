"""Random jobs with planted causes, whose truth is known, and a judge of everything that is said about them."""
