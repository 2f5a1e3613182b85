"""Dumps of PyTorch's flight recorder, one file per rank: pickle or JSON.

nccl_trace_rank_<r>, comm_lib_trace_rank_<r>     default names; any other prefix before the rank works, too
<the same>.json, .pickle, .pkl                   renamed, or written with `torch._C._distributed_c10d`
"""

from __future__ import annotations

from torch_tb_profiler.base.patterns import lazy_regex

_KEYS = lazy_regex(
    rb"pg_config|pg_status|collective_seq_id|p2p_seq_id|time_discovered_started_ns|comm_lib_version"
)


def looks_like_dump(head: bytes) -> bool:
    """Return True for the first bytes of a flight recorder's dump."""
    return head[:1] in (b"\x80", b"{", b"}", b"(") and _KEYS.search(head) is not None


FORMATS = ()
"""None: a dump is one file of many, and which one is found by `discovery.dumps`."""
