"""Kernels that tell the phase of an iteration, by the name of their function.

Template arguments don't count: `flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<...>>` names both phases.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.kernels.families import family_of_name
from torch_tb_profiler.model.kernels.identifiers import parse_identifiers
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import Bool, Trace, name_mask

_DECODE = lazy_regex(
    r"split_?kv|paged_attention_(?:ll4mi|v[12])|unified_attention_3d|batch_?decode|decode_attention|forgen|mla_decode|"
    r"flash_mla_dec|fwd_grouped_kernel_stage|single_query|mqa_decode",
    re.IGNORECASE,
)
_PREFILL = lazy_regex(
    r"flash_fwd_kernel|batch_?prefill|forctx|fmha_?fwd|attn_fwd|context_attention|fwd_kernel_unified|prefill_attention|"
    r"extend_attention|flash_attn_varlen",
    re.IGNORECASE,
)
_KV_CACHE = lazy_regex(
    r"kv_?cache|paged|unified_attention|split_?kv|store_kv|mla_|reshape_and_cache|batch(?:decode|prefill)with",
    re.IGNORECASE,
)
_SAMPLER = lazy_regex(
    r"argmaxops|argmax_|topktopp|top_?[kp]_?(?:top_?[kp]_?)?(?:renorm|mask|sampling)|sample\w*kernel|sampling|multinomial|gumbel",
    re.IGNORECASE,
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

    return ServingKernels(*map(mask, _masks_of_names(trace)))


@stored
def _masks_of_names(trace: Trace) -> tuple[Bool, Bool, Bool, Bool, Bool]:
    """Return the columns of `ServingKernels` by name of a kernel: bool[strings + 1] each."""
    names = trace.events.name[rows_of_kind(trace, Kind.KERNEL)]

    def mask(predicate: re.Pattern[str], whole: bool = False) -> Bool:
        def matches(name: str) -> object:
            path = parse_identifiers(name).path
            # The entry point of Composable Kernel names the kernel among its template arguments.
            wrapped = path.endswith("kentry")
            return predicate.search(name[:4096] if whole or wrapped else path)

        return name_mask(trace.strings, matches, names)

    decode, prefill = mask(_DECODE), mask(_PREFILL)
    by_family = name_mask(trace.strings, lambda name: family_of_name(name) == "attention", names)
    attention: Bool = by_family | decode | prefill
    kv_cache = mask(_KV_CACHE)
    writes = name_mask(trace.strings, lambda name: "cache" in parse_identifiers(name).path.lower(), names)
    attention &= ~(writes & ~decode & ~prefill)
    # Argmax is a functor among the template arguments of a reduction.
    return decode, prefill & ~decode, attention, kv_cache, mask(_SAMPLER, whole=True)
