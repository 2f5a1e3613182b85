"""What every layer may use: errors, units, settings, the interval engine, rules about names."""
