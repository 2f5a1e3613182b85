"""Peak rates of accelerators, and the device and clock that a trace was recorded on."""
