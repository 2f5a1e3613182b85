"""OpenTelemetry spans beside a trace: what an inference engine recorded of each request."""
