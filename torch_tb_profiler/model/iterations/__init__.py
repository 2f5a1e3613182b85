"""What benchmarks record that time the streams of a device per iteration."""
