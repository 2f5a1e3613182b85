"""How the host hands work to the devices: launch calls, queues, copies and sequences of work that repeat."""
