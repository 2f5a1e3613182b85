"""Payloads of the Distributed tab and of its tables.

Durations are ns. `..._ns` points in time count on the *job's clock*, whose zero is the first event of the first
rank; add `RankClockRow.shift_ns` to a rank's own times to get there. `reasons` explains each null, by field name.
Bandwidth is bytes per second (10^9 is one GB/s).

An *operation* is what one rank records; operations of several ranks that belong together are one *collective*.
"""
