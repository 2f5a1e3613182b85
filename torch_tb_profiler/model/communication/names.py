"""What a collective is called: by operators, annotations, metadata and kernels of every library."""

from __future__ import annotations

import re

BACKEND = re.compile(r"^(nccl|rccl|gloo|mpi|ucc|hccl|xccl|oneccl|ccl|fake|threaded):", re.IGNORECASE)
DEVICE_BACKENDS = frozenset(("nccl", "rccl", "hccl", "xccl", "oneccl", "ccl"))
"""Back ends whose operations run on the device: their host calls only launch."""

MESSAGES = frozenset(("send", "recv"))
ALL_TO_ALL = frozenset(("all_to_all", "all_to_allv"))

_DECORATION = re.compile(r"^[a-z0-9]+::?|[_\s]|oop", re.IGNORECASE)

# What a plain name (lower case, no underscores) begins with -> collective; the first that fits.
_COLLECTIVES = {
    "allreducebarrier": "barrier",
    "monitoredbarrier": "barrier",
    "barrier": "barrier",
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoallv": "all_to_allv",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "send": "send",
    "recv": "recv",
    "isend": "send",
    "irecv": "recv",
    "coalesced": "coalesced",
}
_BEGINS = re.compile("|".join(_COLLECTIVES))
_IN_KERNEL = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv|broadcast|cross_device_reduce|"
    r"multimem_all|lamport|quick_?reduce|reduce",
    re.IGNORECASE,
)
_CUSTOM_REDUCTIONS = ("crossdevicereduce", "multimemall", "lamport", "quickreduce")
_LIBRARIES = ("rccl", "oneccl", "hccl", "ucc", "nccl", "msccl", "nvshmem")


def collective_in(name: str) -> str | None:
    """all_reduce, all_gather, ... of a name that operators, annotations or metadata give; None if it is none."""
    begin = _BEGINS.match(_DECORATION.sub("", name).lower())
    return _COLLECTIVES[begin[0]] if begin else None


def collective_of_kernel(name: str) -> str:
    """The collective that a kernel's name tells, or is (Gaudi's `Send`); "unknown" if it tells none."""
    match = _IN_KERNEL.search(name)
    plain = match[0].replace("_", "").lower() if match else name
    if plain in _CUSTOM_REDUCTIONS:
        return "all_reduce"
    return "send_recv" if plain == "sendrecv" else collective_in(plain) or "unknown"


def backend_of_kernel(name: str) -> str:
    """The library whose kernel this is; "custom" for the kernels of serving engines."""
    lower = name.lower()
    return next((library for library in _LIBRARIES if library in lower), "custom")
