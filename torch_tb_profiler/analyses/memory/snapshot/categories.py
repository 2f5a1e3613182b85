"""What the blocks of a memory snapshot are for, by the stacks that allocated them.

The innermost frame that a rule matches decides: a matmul of a recomputed layer lies in `backward` too, but
`forward` is closer to it. Blocks that no rule matches are unknown, and so are those without a stack.
"""

from __future__ import annotations

import re

import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.model.trace import Bool, Int8, Int32, Int64

CATEGORIES = (
    "unknown",
    "parameters",
    "gradients",
    "optimizer state",
    "activations",
    "communication buffers",
    "KV cache",
    "library workspace",
    "CUDA graphs",
    "compiled code",
)
"""Categories by their codes."""

UNKNOWN, PARAMETERS, GRADIENTS, OPTIMIZER, ACTIVATIONS, COMMUNICATION, KV_CACHE, WORKSPACE, GRAPHS, COMPILED = (
    range(len(CATEGORIES))
)

_RULES = (
    (WORKSPACE, r"workspace", r""),
    (KV_CACHE, r"kv_?cache", r"kv_?cache|cache_engine"),
    (
        OPTIMIZER,
        r"^_init_group$|^_(?:single|multi)_tensor_|^_fused_\w+|optimizer_step",
        r"/optim(?:izers?)?/|optimizer",
    ),
    (
        COMMUNICATION,
        r"all_?gather|reduce_?scatter|all_?reduce|all_?to_?all|broadcast|ProcessGroup|nccl",
        r"/distributed/(?:c10d|distributed_c10d|_functional_collectives|fsdp|algorithms)",
    ),
    (GRADIENTS, r"backward|accumulate_?grad", r"/autograd/"),
    (
        PARAMETERS,
        r"^__init__$|^_apply$|reset_parameters|load_state_dict|from_pretrained|init_weights|materialize|to_empty",
        r"",
    ),
    (ACTIVATIONS, r"^forward$|^_forward|^_call_impl$|^_wrapped_call_impl$|^forward_", r""),
)
"""(category, regular expression for the function's name, for the path); either decides.
Rules are tried in this order; the functions of C++ have no path."""


_BACKWARD = r"backward|accumulate_?grad|unpack_hook|recompute_fn"
"""Functions of the backward pass, those that checkpointing recomputes activations with included."""


@derived
def backward_stacks(snapshot: RecordedSnapshot) -> Bool:
    """Return which stacks are of the backward pass, bool[stacks]: any frame says so."""
    names = snapshot.frames.name
    pattern = re.compile(_BACKWARD, re.IGNORECASE)
    hits = [code for code in np.unique(names).tolist() if pattern.search(str(snapshot.texts[code]))]
    of_frame = np.isin(names, np.array(hits, np.int32)).astype(np.int8)
    found: Bool = first_matching_frames(snapshot, of_frame) != 0
    return found


@derived
def categorize_stacks(snapshot: RecordedSnapshot) -> Int8:
    """Return the category of each stack, int8[stacks]: that of the innermost frame that a rule matches."""
    return first_matching_frames(snapshot, _categorize_frames(snapshot)).astype(np.int8)


def first_matching_frames(snapshot: RecordedSnapshot, of_frame: Int8 | Int32) -> Int32:
    """Return for each stack the value of the innermost frame that has one, 0 if none has.

    of_frame  a value of each frame, 0 for none
    """
    values = of_frame[snapshot.stack_frames]
    matched = np.flatnonzero(values)
    ends = snapshot.stack_ends
    first = np.searchsorted(matched, np.concatenate([[0], ends[:-1]]))
    found = np.append(matched, len(values))[first]
    inside = found < ends
    of_stack = np.zeros(len(ends), np.int32)
    of_stack[inside] = values[found[inside]]
    return of_stack


def _categorize_frames(snapshot: RecordedSnapshot) -> Int8:
    """Return the category that each frame has by itself, UNKNOWN where no rule matches."""
    names, files = snapshot.frames.name, snapshot.frames.file
    categories = np.zeros(len(names), np.int8)
    texts = [str(text) for text in snapshot.texts]
    for category, name_rule, file_rule in _RULES:
        matches = np.zeros(len(names), np.bool_)
        for rule, codes in ((name_rule, names), (file_rule, files)):
            if rule:
                pattern = re.compile(rule, re.IGNORECASE)
                used = np.unique(codes)
                hits = np.array([code for code in used.tolist() if pattern.search(texts[code])], np.int32)
                matches |= np.isin(codes, hits)
        categories[matches & (categories == UNKNOWN)] = category
    return categories


def categorize(snapshot: RecordedSnapshot, stack: Int32, label: Int32) -> Int8:
    """Return the categories of allocations in the history by their stacks and labels.

    Memory in a private pool belongs to CUDA graphs; compiled code is what only its compile context explains.
    """
    categories = categorize_stacks(snapshot)[stack]
    if len(snapshot.labels.pool):
        private, compiled = _label_categories(snapshot)
        categories = np.where((categories == UNKNOWN) & compiled[label], COMPILED, categories)
        categories = np.where(private[label], GRAPHS, categories)
    return categories.astype(np.int8)


def categorize_blocks(snapshot: RecordedSnapshot, blocks: Int64 | slice) -> Int8:
    """Return the categories of blocks of the snapshot by their stacks and the pools of their segments."""
    private = _find_private_pools(snapshot)[snapshot.segments.pool[snapshot.blocks.segment[blocks]]]
    categories = categorize_stacks(snapshot)[snapshot.blocks.stack[blocks]]
    return np.where(private, GRAPHS, categories).astype(np.int8)


def _find_private_pools(snapshot: RecordedSnapshot) -> Bool:
    """Return which pools are not the default one."""
    private: Bool = (snapshot.pools.first != 0) | (snapshot.pools.second != 0)
    return private


@derived
def _label_categories(snapshot: RecordedSnapshot) -> tuple[Bool, Bool]:
    """Return which labels are of a private pool, and which of a compile context."""
    labels = snapshot.labels
    private = _find_private_pools(snapshot)[labels.pool]
    contexts = np.unique(labels.context)
    none = [code for code in contexts.tolist() if snapshot.texts[code] in ("", "N/A")]
    return private, ~np.isin(labels.context, none)
