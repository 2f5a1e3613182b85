"""Work of a device whose parts are separate engines: one execution may run on many of them."""
