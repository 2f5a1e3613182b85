"""Collectives across ranks: the table of all, the participants of one, those that join chosen ranks."""
