"""Gaudi cards: which thread of a file is which engine, and what the configuration of the profiler asked for.

process  /device:HPU:0                   tid 7003 = engine type 7 (TPC) x 1000 + engine 3
  thread 7003  "TPC 3"   Kernel   add_fwd_bf16
  thread 14001 "NIC 1"   Runtime  SendRecv                    its network, recorded as a call
process  4242  "Bridge Logs"    Runtime  LaunchSyncTensorsGraph

Types are numbered as in `backend/profiling/trace_sources/trace_parser.cpp` of Habana's bridge to PyTorch. For the
configuration see "Configuration" and "Runtime" in Habana's profiling guide, and `hl-prof-config --help`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.format import format_bytes
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.model.thread_names import process_and_thread_names
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace

ENGINE_NAMES = ("MME", "TPC", "DMA", "NIC", "other")
"""Matrix engines, vector cores, copies, network; "other" are those that control, rotate or decode."""

MME, TPC, DMA, NIC, OTHER = range(len(ENGINE_NAMES))

_CARD_PROCESS = lazy_regex(r"^/device:HPU:\d+$")
_ENGINE = lazy_regex(r"MME|TPC|DMA|NIC", re.IGNORECASE)
_ENGINE_BY_TYPE = {
    **dict.fromkeys((0, 3, 4, 5), DMA),
    **dict.fromkeys((1, 6), MME),
    **dict.fromkeys((2, 7), TPC),
    **dict.fromkeys((14, 15, 16, 17), NIC),
}
_ENGINES_PER_TYPE = 1000
"""Where threads have no names, their number is 1000 x type + engine."""


API_PHASE = "profileApi"
"""The phase in which PyTorch's profiler begins and ends the recording of the card."""

CONFIG_KEY = "gaudi_profiler_config"
"""Key of a trace's metadata under which its configuration lies, as builtin types."""

_UNIT_CLASSES = {
    "DMA": "DMA",
    "EDMA": "DMA",
    "PDMA": "DMA",
    "KDMA": "DMA",
    "MME": "MME",
    "TPC": "TPC",
    "NIC": "NIC",
}
"""Class of engines (ENGINE_NAMES) of each class of units that a configuration switches."""

_LOST = {
    "DMA": "memory copies",
    "MME": "matrix products",
    "TPC": "all other kernels",
    "NIC": "transfers between cards",
}
"""What is missing from a trace without the events of a class of engines."""

_PHASES = {
    API_PHASE: "while PyTorch's profiler does (profileApi)",
    "enq": "at one launch (enq)",
    "multiEnq": "at a range of launches (multiEnq)",
    "multi-enq": "at a range of launches (multi-enq)",
    "deviceAcq": "while the process holds the card (deviceAcq)",
    "device-acq": "while the process holds the card (device-acq)",
}


@derived
def thread_engines(trace: Trace) -> npt.NDArray[np.int8]:
    """Return int8[threads + 1]: index into ENGINE_NAMES of each thread of a card, else NO_CODE.

    The last cell, for no thread, is NO_CODE.
    """
    known = process_and_thread_names(trace)
    cards = {pid for pid, name in known.process.items() if "HPU" in name and _CARD_PROCESS.match(name)}
    engine = np.full(len(trace.threads) + 1, NO_CODE, np.int8)
    for code, thread in enumerate(trace.threads):
        if thread.pid in cards:
            engine[code] = _find_engine(known.thread.get(code, ""), thread.tid)
    return engine


def _find_engine(name: str, tid: int | str | None) -> int:
    """Return the engine by the name of the thread, else by the number of its type."""
    if match := _ENGINE.search(name):
        return ENGINE_NAMES.index(match[0].upper())
    return _ENGINE_BY_TYPE.get(tid // _ENGINES_PER_TYPE, OTHER) if isinstance(tid, int) else OTHER


class GaudiConfig(msgspec.Struct, frozen=True):
    """What a configuration asks for; None: it leaves that to the profiler's default.

    file          how people know the file
    card, host    whether work of the card, and calls of Synapse on the host, are recorded
    arch          the generation: gaudi, gaudi2, gaudi3
    phase         when the card records: profileApi, at launches (enq, multi-enq), or always (device-acq)
    buffer_bytes  size of the buffer on the card
    parsed        whether the recording is decoded: without that PyTorch gets none of it
    units         class of units -> whether it is recorded, where the file says so
    """

    file: str
    card: bool | None = None
    host: bool | None = None
    arch: str | None = None
    phase: str | None = None
    buffer_bytes: int | None = None
    parsed: bool = True
    units: dict[str, bool] = {}


@derived
def recorded_config(trace: Trace) -> GaudiConfig | None:
    """Return the configuration that lay beside a trace, or None."""
    found = trace.metadata.get(CONFIG_KEY)
    return None if found is None else msgspec.convert(found, threadsafe(GaudiConfig))


def is_gaudi(trace: Trace) -> bool:
    """Return whether a Gaudi card or its software took part in a recording."""
    if (thread_engines(trace) >= 0).any():
        return True
    known = process_and_thread_names(trace)
    names = (*known.process.values(), *known.thread.values())
    return any(name == "Bridge Logs" or name.startswith("Synapse/") for name in names)


def describe_config(config: GaudiConfig) -> list[tuple[str, str]]:
    """Return (what, setting) of all that a configuration asks for, in words."""
    switch = {True: "recorded", False: "not recorded", None: "as the profiler's default"}
    lines = [
        ("Work of the card (HwTrace)", switch[config.card]),
        ("Calls on the host (HostProfiler)", switch[config.host]),
    ]
    if config.arch is not None:
        lines.append(("Generation", config.arch))
    if config.phase is not None:
        lines.append(("Card records", _PHASES.get(config.phase, config.phase)))
    if config.buffer_bytes is not None:
        lines.append(("Buffer on the card", format_bytes(config.buffer_bytes)))
    for unit, enabled in sorted(config.units.items()):
        lines.append((unit, switch[enabled]))
    return lines


class Omission(NamedTuple):
    """Something that a recording with a configuration lacks, as a sentence with what turns it on.

    certain  False if it depends on the run or on the profiler's default
    """

    sentence: str
    certain: bool


def find_omissions(config: GaudiConfig) -> list[Omission]:
    """Return what a recording with this configuration will lack, the worst first."""
    if config.card is False:
        lost = "Won't record any work of the card: HwTrace is off. Turn it on: `hl-prof-config --hw-trace on`."
        return [Omission(lost, True), *_find_host_omissions(config)]
    found = []
    if not config.parsed:
        lost = (
            "Won't decode the card's recording (skipParse is on), so PyTorch's trace will have none of its work."
        )
        found.append(Omission(lost, True))
    if config.phase not in (None, API_PHASE):
        lost = (
            f"The card records {_PHASES.get(config.phase, config.phase)}, not when PyTorch's profiler does, so a "
            "trace may lack its work. Use `hl-prof-config --use-template profile_api`."
        )
        found.append(Omission(lost, False))
    for name in ENGINE_NAMES[:-1]:
        units = sorted(unit for unit in config.units if _UNIT_CLASSES.get(unit) == name)
        if units and not any(config.units[unit] for unit in units):
            names, verb, them = " and ".join(units), *(("is", "it") if len(units) == 1 else ("are", "them"))
            lost = f"Won't record {_LOST[name]}: {names} {verb} off. Turn {them} on with `hl-prof-config`."
            found.append(Omission(lost, True))
    if "NIC" not in config.units:
        lost = (
            "Doesn't turn NIC on, so transfers between cards may be missing. With several cards, use "
            "`hl-prof-config --use-template profile_api_with_nics`."
        )
        found.append(Omission(lost, False))
    return [*found, *_find_host_omissions(config)]


def _find_host_omissions(config: GaudiConfig) -> list[Omission]:
    if config.host is not False:
        return []
    lost = "Won't record Synapse's calls on the host: HostProfiler is off. Turn it on: `hl-prof-config --host on`."
    return [Omission(lost, True)]


def contradictions(trace: Trace, config: GaudiConfig) -> list[str]:
    """Return, as sentences, where a trace has what its configuration excludes, or lacks what it asks for.

    Either shows that another configuration was in use: the one of HABANA_PROF_CONFIG, or of ~/.habana.
    """
    return list(_find_contradictions(trace, config))


def _find_contradictions(trace: Trace, config: GaudiConfig) -> Iterator[str]:
    seen = _recorded_engines(trace)
    other = "so another configuration was in use"
    if config.card is False and seen:
        yield f"HwTrace is off, but the trace has work of the card, {other}."
        return
    if config.card and not seen:
        yield "HwTrace is on, but the trace has no work of the card."
        return
    for unit, enabled in sorted(config.units.items()):
        name = _UNIT_CLASSES.get(unit)
        if name is None:
            continue
        if (
            not enabled
            and name in seen
            and not any(on for each, on in config.units.items() if _UNIT_CLASSES.get(each) == name)
        ):
            yield f"{unit} is off, but the trace has events of {name}, {other}."
        elif enabled and seen and name not in seen:
            yield f"{unit} is on, but the trace has no event of {name}: nothing ran there, or {other[3:]}."


def _recorded_engines(trace: Trace) -> set[str]:
    """Return the classes of engines that have slices."""
    engine = thread_engines(trace)[trace.events.thread[trace.events.duration != ABSENT]]
    return {ENGINE_NAMES[code] for code in np.unique(engine[engine >= 0]).tolist()}
