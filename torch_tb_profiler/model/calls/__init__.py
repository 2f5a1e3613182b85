"""Host calls: how they nest, which operators they are, what they launch."""
