"""Formulas for the FLOPs and bytes of operators, by family: functions from a recorded call to its cost."""
