"""Find the phase of a serving engine's iterations by their kernels, and the iterations themselves without labels.

device   [ attention, ... ][ sampler ][ copy ][ attention, ... ][ sampler ]
number     0                                    1

Kernels are known by the name of their function. Template arguments don't count:
`flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<...>>` names both phases.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.base.patterns import AnyCase
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.kernels.families import family_of_name
from torch_tb_profiler.model.kernels.identifiers import parse_identifiers
from torch_tb_profiler.model.kinds import Kind, codes_of_kinds, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.serving.labeled import COUNTS, DECODE, MIXED, PREFILL, UNKNOWN_PHASE, EngineBatches
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int32, Int64, Trace, name_mask

MIN_INFERRED = 2
"""Fewest iterations that kernels alone must show: one may be anything."""

_DECODE = AnyCase(
    """splitkv split_kv paged_attention_ll4mi paged_attention_v1 paged_attention_v2 unified_attention_3d
    batchdecode batch_decode decode_attention forgen mla_decode flash_mla_dec fwd_grouped_kernel_stage single_query
    mqa_decode"""
)
_PREFILL = AnyCase(
    """flash_fwd_kernel batchprefill batch_prefill forctx fmhafwd fmha_fwd attn_fwd context_attention
    fwd_kernel_unified prefill_attention extend_attention flash_attn_varlen"""
)
_KV_CACHE = AnyCase(
    """kvcache kv_cache paged unified_attention splitkv split_kv store_kv mla_ reshape_and_cache batchdecodewith
    batchprefillwith"""
)
_SAMPLER = AnyCase(
    "argmaxops argmax_ topktopp sampling multinomial gumbel",
    ("top", r"top_?[kp]_?(?:top_?[kp]_?)?(?:renorm|mask)"),
    ("sample", r"sample\w*kernel"),
)


class ServingKernels(msgspec.Struct, frozen=True):
    """Which of the n events are kernels of these kinds, bool[n].

    decode, prefill  attention that serves one phase alone
    attention        attention of any sort
    kv_cache         kernels that read or write a paged KV cache
    sampler          kernels that choose the next tokens
    """

    decode: Bool
    prefill: Bool
    attention: Bool
    kv_cache: Bool
    sampler: Bool


@derived
def serving_kernels(trace: Trace) -> ServingKernels:
    """Return what the names of the kernels tell about serving."""
    rows = rows_of_kind(trace, Kind.KERNEL)

    def mask(of_name: Bool) -> Bool:
        found = np.zeros(len(trace), np.bool_)
        if of_name.any():
            found[rows] = of_name[trace.events.name[rows]]
        return found

    return ServingKernels(*map(mask, _build_masks_of_names(trace)))


@stored
def _build_masks_of_names(trace: Trace) -> tuple[Bool, Bool, Bool, Bool, Bool]:
    """Return the columns of `ServingKernels` by name of a kernel: bool[strings + 1] each."""
    names = codes_of_kinds(trace, Kind.KERNEL)

    def mask(rule: AnyCase, whole: bool = False) -> Bool:
        def matches(name: str) -> object:
            path = parse_identifiers(name).path
            # The entry point of Composable Kernel names the kernel among its template arguments.
            wrapped = path.endswith("kentry")
            return rule.search(name[:4096] if whole or wrapped else path)

        return name_mask(trace.strings, matches, names)

    decode, prefill = mask(_DECODE), mask(_PREFILL)
    by_family = name_mask(trace.strings, lambda name: family_of_name(name) == "attention", names)
    attention: Bool = by_family | decode | prefill
    kv_cache = mask(_KV_CACHE)
    writes = name_mask(trace.strings, lambda name: "cache" in parse_identifiers(name).path.lower(), names)
    attention &= ~(writes & ~decode & ~prefill)
    # Argmax is a functor among the template arguments of a reduction.
    return decode, prefill & ~decode, attention, kv_cache, mask(_SAMPLER, whole=True)


def infer_iterations(trace: Trace) -> EngineBatches | None:
    """Return iterations that end with a sampling kernel, if the device uses a paged KV cache."""
    kernels = serving_kernels(trace)
    if not kernels.kv_cache.any() or not kernels.sampler.any():
        return None
    rows, launch = device_launches(trace)
    devices = device_ids(trace)[rows]
    if len(rows) == 0:
        return None
    mine = devices == devices[0]
    rows, launch = rows[mine], launch[mine]
    order = np.argsort(trace.events.start[rows], kind="stable")
    rows, launch = rows[order], launch[order]
    sampler = kernels.sampler[rows]
    is_kernel = event_kinds(trace)[rows] == Kind.KERNEL
    # An iteration begins with the first kernel after a sampler; copies between them still belong to the sampler.
    sampled = np.cumsum(sampler)
    previous_kernel = _previous_kernel(is_kernel)
    opens = is_kernel & ~sampler & (previous_kernel >= 0) & sampler[np.maximum(previous_kernel, 0)]
    group = np.cumsum(opens)
    # Sampling of several kernels makes fragments without attention: they belong to the iteration before.
    count = int(group[-1]) + 1
    has_attention = np.bincount(group, kernels.attention[rows], count) > 0
    number = np.maximum(np.cumsum(has_attention) - 1, 0)[group]
    count = int(number[-1]) + 1
    if count < MIN_INFERRED or sampled[-1] == 0:
        return None
    owner = np.full(len(trace), NO_CODE, np.int32)
    owner[rows] = number
    linked = launch >= 0
    starts, ends = np.full(count, np.iinfo(np.int64).max), np.full(count, ABSENT)
    np.minimum.at(starts, number[linked], trace.events.start[launch[linked]])
    np.maximum.at(ends, number[linked], event_ends(trace)[launch[linked]])
    lonely = ends == ABSENT
    if lonely.any():
        first = np.searchsorted(number, np.flatnonzero(lonely))
        starts[lonely], ends[lonely] = trace.events.start[rows][first], trace.events.start[rows][first]
    calls = launch[linked]
    threads, counts = np.unique(trace.events.thread[calls], return_counts=True)
    return EngineBatches(
        engine=None,
        thread=int(threads[np.argmax(counts)]) if len(threads) else NO_CODE,
        event=np.full(count, NO_CODE, np.int32),
        phase=np.full(count, UNKNOWN_PHASE, np.int8),
        starts=starts,
        ends=ends,
        counts={name: np.full(count, ABSENT, np.int64) for name in COUNTS},
        recomputed=np.zeros(count, np.int64),
        drafts=1.0,
        idle_labels=np.empty(0, np.int32),
        owner=owner,
    )


def _previous_kernel(is_kernel: Bool) -> Int64:
    """Return the position of the last kernel before each event, int64[m], NO_CODE if there is none."""
    positions = np.where(is_kernel, np.arange(len(is_kernel)), NO_CODE)
    return np.append(NO_CODE, np.maximum.accumulate(positions)[:-1])


def phase_of_kernels(trace: Trace, rows: Int32, number: Int64, count: int, graph: Int8) -> Int8:
    """Return the phase that attention kernels and graphs tell, int8[k], or UNKNOWN_PHASE.

    One graph that covers the iteration is decode: prompts have too many lengths to be captured as a whole.
    """
    kernels = serving_kernels(trace)
    decode = np.bincount(number, kernels.decode[rows], count) > 0
    prefill = np.bincount(number, kernels.prefill[rows], count) > 0
    phase = np.full(count, UNKNOWN_PHASE, np.int8)
    phase[decode] = DECODE
    phase[prefill] = PREFILL
    phase[decode & prefill] = MIXED
    phase[graph == 1] = DECODE
    return phase
