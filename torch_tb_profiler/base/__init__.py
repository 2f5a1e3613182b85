"""What every layer may import: errors, formats, settings, the interval engine, rules about names."""
