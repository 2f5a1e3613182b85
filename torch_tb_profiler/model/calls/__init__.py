"""Host calls: how they nest, what they launch, and which of them run the backward pass."""
