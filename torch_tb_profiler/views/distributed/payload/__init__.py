"""What the distributed view answers: the shape of its payloads.

Durations are ns. `..._ns` points in time count on the *job's clock*, whose zero is the first event of the first
rank; `Clock.shift_ns` leads from a rank's own times to it. A null is explained in `reasons`, by field name.
Bandwidth is bytes per second (10^9 is one GB/s).

An *operation* is what one rank records; operations of several ranks that belong together are one *collective*.
"""
