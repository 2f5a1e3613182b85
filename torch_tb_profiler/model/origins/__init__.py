"""Where device work comes from: operator, module, source line, and how that is known."""
