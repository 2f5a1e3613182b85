"""Reasons why a view has no answer or value: a recording for which each is true, and one for which it is not."""
