r"""Compile records: the structured log of torch.compile, as `TORCH_TRACE` and our `handler` write it.

    V1125 10:00:00.123456 77 torch/_inductor/graph.py:2100] {"inductor_output_code": {...}, "frame_id": 0, ...}
    \t# AOT ID: ['0_forward']
    \t...

A record is a line with JSON and the indented lines after it. Of each graph, four records count:

    inductor_output_code                               its code, with a comment on each kernel that it calls
    inductor_provenance_tracking_node_mappings         the FX nodes of each kernel
    inductor_provenance_tracking_kernel_stack_traces   the lines of the program of each kernel
    fx_graph_cache_miss, fx_graph_cache_hit            the key by which a trace names the graph

Stack traces of a backward graph repeat those of graphs that were compiled before, so only the kernels that the
graph's own code calls count.

AOTInductor writes `kernel_information.json` into its package: the nodes and stack traces of each call of a kernel.

    {"cpp_fused_silu_0:2": {"stack_traces": ["File ..."], "post_grad_nodes": [...], "pre_grad_nodes": [...]}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.origin_records import CompiledGraph, CompiledKernel
from torch_tb_profiler.model.origins.frames import is_user_file

MAX_LOG_BYTES = 512 * 2**20
"""Largest log that is read. A log with all artifacts of a large model has about 100 MB."""

MAX_SOURCE_BYTES = 256 * 2**10
"""Largest generated code that is kept to be shown."""

_HEAD = lazy_regex(rb"^V\d{4} [\d:.]+ \d+ [^\]]*\] (?P<json>\{.*\})\s*$")
_HANDLE = lazy_regex(r"\[Provenance debug handles\] (?P<label>(?P<name>\S+):\d+)\s*$", re.MULTILINE)
_FRAME = lazy_regex(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in ')
_BACKWARD = lazy_regex(r"^# AOT ID: \['\d+_backward'\]", re.MULTILINE)

_WANTED = (b"inductor_output_code", b"inductor_provenance_tracking", b"fx_graph_cache_")
_MAPPINGS = "inductor_provenance_tracking_node_mappings"
_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_KEYED, _KEYLESS = ("fx_graph_cache_miss", "fx_graph_cache_hit"), "fx_graph_cache_bypass"


_CALL = lazy_regex(r"^(?P<name>\S+):(?P<handle>\d+)$")
"""A kernel's name and the number of its call in the generated code."""


class _OpenGraph:
    """A graph whose records are being collected."""

    def __init__(self, compile_id: str, file: str, code: str) -> None:
        self.compile_id = compile_id
        self.file = file
        self.code = code
        self.key: str | None = None
        self.mapping: dict[str, Any] = {}
        self.stacks: dict[str, Any] = {}

    def finish(self) -> CompiledGraph:
        """Return the graph with the kernels that its code calls."""
        posts, before = _dict(self.mapping.get("cppCodeToPost")), _dict(self.mapping.get("postToPre"))
        kernels = []
        for match in _HANDLE.finditer(self.code):
            label = match["label"]
            post = _names(posts.get(label)) if label in posts else None
            nodes = None if post is None else _distinct(name for node in post for name in _names(before.get(node)))
            kernels.append(
                CompiledKernel(match["name"], nodes or None, post or None, _lines(self.stacks.get(label)))
            )
        source = self.code if len(self.code) <= MAX_SOURCE_BYTES else ""
        backward = _BACKWARD.search(self.code[:1000]) is not None
        return CompiledGraph(self.compile_id, backward, self.key, tuple(kernels), self.file, source)


def read_compile_log(stream: BinaryIO) -> list[CompiledGraph]:
    """Return the graphs of one process, in the order of their compilation; a damaged record is left out."""
    graphs: list[_OpenGraph] = []
    open_graphs: dict[str, _OpenGraph] = {}
    keys: dict[str, str] = {}
    for head, payload in _records(stream):
        compile_id = f"{head.get('frame_id')}/{head.get('frame_compile_id')}"
        artifact = _dict(head.get("artifact")).get("name", "")
        if "inductor_output_code" in head:
            file = _dict(head["inductor_output_code"]).get("file_path", "")
            graph = _OpenGraph(compile_id, str(file), payload)
            graph.key = keys.pop(compile_id, None)
            open_graphs[compile_id] = graph
            graphs.append(graph)
            continue
        current, content = open_graphs.get(compile_id), _decode(payload)
        if artifact in _KEYED and isinstance(content.get("key"), str):
            if current is not None and current.key is None:
                current.key = content["key"]
            else:  # the key of a graph that the cache answered comes before its code
                keys[compile_id] = content["key"]
        elif current is not None and artifact == _MAPPINGS:
            current.mapping = content
        elif current is not None and artifact == _STACKS:
            current.stacks = content
    return [each for graph in graphs if (each := graph.finish()).kernels]


def read_kernel_information(stream: BinaryIO) -> list[CompiledKernel]:
    """Return the calls of kernels in a model of AOTInductor, in order. Raises TraceError if it is no such file."""
    data = stream.read(MAX_LOG_BYTES + 1)
    if len(data) > MAX_LOG_BYTES:
        raise TraceError(f"it is larger than {MAX_LOG_BYTES // 2**20} MiB")
    calls: list[tuple[int, CompiledKernel]] = []
    for label, content in _decode(data).items():
        match = _CALL.match(label)
        if match is None or not isinstance(content, dict):
            raise TraceError(f"it isn't what AOTInductor writes: {label[:80]!r} isn't a call of a kernel")
        nodes, post = (_names(content.get(key)) or None for key in ("pre_grad_nodes", "post_grad_nodes"))
        kernel = CompiledKernel(match["name"], nodes, post, _lines(content.get("stack_traces")))
        calls.append((int(match["handle"]), kernel))
    if not calls:
        raise TraceError("it names no kernel")
    return [kernel for _, kernel in sorted(calls, key=lambda call: call[0])]


def _records(stream: BinaryIO) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the JSON and the payload of each record that says something about kernels."""
    head: dict[str, Any] | None = None
    body: list[bytes] = []
    left = MAX_LOG_BYTES
    for line in stream:
        left -= len(line)
        if left < 0:
            break
        if line.startswith(b"\t"):
            if head is not None:
                body.append(line[1:])
            continue
        if head is not None:
            yield head, b"".join(body).decode("utf-8", "replace").rstrip("\n")
        match = _HEAD.match(line) if any(word in line for word in _WANTED) else None
        head, body = (_decode(match["json"]) or None) if match else None, []
    if head is not None:
        yield head, b"".join(body).decode("utf-8", "replace").rstrip("\n")


def _decode(text: str | bytes) -> dict[str, Any]:
    """Return a JSON object; an empty one if the text is none."""
    try:
        return _dict(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _names(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _distinct(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _lines(stacks: Any) -> tuple[str, ...] | None:
    """Return the innermost line of the user's code in each stack, without repetitions."""
    found: dict[str, None] = {}
    for stack in _names(stacks):
        frames = [f"{file}:{line}" for file, line in _FRAME.findall(stack) if is_user_file(file)]
        if frames:
            found[frames[-1]] = None
    return tuple(found) or None
