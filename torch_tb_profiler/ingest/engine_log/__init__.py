"""The log of a vLLM or SGLang server beside a trace: what it says of its requests and its queue."""
