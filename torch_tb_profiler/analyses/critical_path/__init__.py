"""What bounds a step: its critical path, what a change would bring, how much slack the rest has."""
