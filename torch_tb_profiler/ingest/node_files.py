"""Notes on the nodes of CUDA graphs in files beside a trace.

    rank0.1.pt.trace.json.py_stacks.json.gz     {"30064771073": "model.py:34:forward\\ntrain.py:12:step"}
    kernel_annotations.pkl                      {30064771073: [{"name": "layers.0.ffn"}]}

PyTorch 2.15 writes the first with `dump_kernel_py_stacks`. The second is a pickle of `get_kernel_annotations()`.
"""

from __future__ import annotations

import gzip
from typing import Any, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.plain_pickle import read_plain_pickle
from torch_tb_profiler.model.origin_records import NodeAnnotation
from torch_tb_profiler.model.origins.frames import MAX_LINES, is_user_file

MAX_STACK_BYTES = 256 * 2**20
"""Largest unpacked file of launch stacks."""

_LINE = lazy_regex(r"^(?P<file>.+?):(?P<line>\d+)(?::|$)")
_REGION_KEYS = ("module_fqn", "name", "str", "annotation")


def read_node_stacks(stream: BinaryIO) -> dict[str, tuple[str, ...]]:
    """Return the lines of each node, innermost first. Raises TraceError if it isn't such a file."""
    try:
        with gzip.open(stream) as unpacked:
            data = unpacked.read(MAX_STACK_BYTES + 1)
    except (OSError, EOFError) as error:
        raise TraceError(f"it can't be unpacked: {error}") from error
    if len(data) > MAX_STACK_BYTES:
        raise TraceError(f"it is larger than {MAX_STACK_BYTES // 2**20} MiB")
    try:
        stacks = msgspec.json.decode(data, type=dict[str, str])
    except (msgspec.DecodeError, RecursionError) as error:
        raise TraceError(f"it isn't a JSON object of strings: {error}") from error
    return {node: lines for node, text in stacks.items() if (lines := _stack_lines(text))}


def _stack_lines(text: str) -> tuple[str, ...]:
    matches = (_LINE.match(line.strip()) for line in text.splitlines()[: 4 * MAX_LINES])
    lines = [f"{match['file']}:{match['line']}" for match in matches if match and is_user_file(match["file"])]
    return tuple(lines[:MAX_LINES])


def read_node_annotations(stream: BinaryIO) -> dict[str, NodeAnnotation]:
    """Return the annotation of each node, by its whole ID as text. Raises TraceError if it isn't such a file."""
    content = read_plain_pickle(stream, number_keys=True)
    if not isinstance(content, dict):
        raise TraceError("it isn't a dict of annotations by node")
    found: dict[str, NodeAnnotation] = {}
    for node, notes in content.items():
        if str(node).isdecimal() and (note := _annotation(notes)) is not None:
            found[str(node)] = note
    return found


def _annotation(notes: Any) -> NodeAnnotation | None:
    """Return the innermost annotation of a node that says where it comes from."""
    for note in reversed(notes if isinstance(notes, list | tuple) else [notes]):
        if isinstance(note, str) and note:
            return NodeAnnotation(note)
        if isinstance(note, dict):
            region = next((str(note[key]) for key in _REGION_KEYS if isinstance(note.get(key), str)), None)
            phase = str(note.get("autograd_phase", "")).lower()
            backward = phase.startswith("backward") if phase.startswith(("backward", "forward")) else None
            if region is not None or backward is not None:
                return NodeAnnotation(region, backward)
    return None
