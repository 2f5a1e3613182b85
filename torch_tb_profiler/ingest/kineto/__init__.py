"""Chrome traces as Kineto and its relatives write them."""
