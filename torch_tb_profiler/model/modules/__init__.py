"""Modules of the model, and what Lightning records of them."""
