"""Claims: sentences about who, why, or how much, with a trace where each holds and one where it is false."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

from tests.support.random_jobs.surfaces import found_texts
from tests.support.traces import draw
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView, parse_params
from torch_tb_profiler.views import find_view

ReadSentences = Callable[[], str]
"""Builds a recording and returns every sentence about it."""


class Claim(NamedTuple):
    """A sentence by its template: `says` is among the sentences where it holds, and not among those of `other`."""

    template: str
    says: str
    holds: ReadSentences
    false_if: str
    other: ReadSentences


def templates_of(module: ModuleType | SimpleNamespace) -> Iterator[str]:
    """Yield every template of a module: what `text` is called with, what `template` is set to, those of tables.

    A table is a dictionary or a tuple of the module; its texts with a part to fill in are templates. A sentence
    that is written out is one, too: of an f-string, what is filled in is {}.
    """
    parsed = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    for table in parsed.body:
        if isinstance(table, ast.Assign) and isinstance(table.value, ast.Dict | ast.Tuple):
            texts = table.value.values if isinstance(table.value, ast.Dict) else table.value.elts
            for each in texts:
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and "{" in each.value:
                    yield each.value
    for node in ast.walk(parsed):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "text":
            values = node.args[:1]
        elif isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == ["template"]:
            values = [node.value]
        else:
            continue
        for value in values:
            whole = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            yield from (
                each.value for each in whole if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
    yield from _written_sentences(parsed)


_SENTENCE = re.compile(r"(?:[A-Z]|\{\}).*\w.* .*\w.*\.", re.DOTALL)


def _written_sentences(parsed: ast.Module) -> Iterator[str]:
    """Yield the sentences of strings and f-strings, without docstrings and what is said of a view in general."""
    others: set[int] = set()
    for node in ast.walk(parsed):
        if isinstance(node, ast.Expr):
            others.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            others |= {id(part) for part in ast.walk(node) if part is not node}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("View"):
            others |= {id(each) for each in node.args}
            others |= {id(each.value) for each in node.keywords}
    for node in ast.walk(parsed):
        if id(node) in others:
            continue
        if isinstance(node, ast.JoinedStr | ast.Constant) and _SENTENCE.fullmatch(_spell(node)):
            yield _spell(node)


def read_sentences(slug: str, trace: Trace) -> str:
    """Return every sentence of the answer of a view about one trace."""
    view = find_view(slug)
    assert isinstance(view, TraceView)
    return " ".join(sentence for _, sentence in found_texts(view.build(trace, parse_params(view.params, {})), ""))


_NUMBER = re.compile(r"correlation=(\d+)")


def _number_in_step(step: int, found: re.Match[str]) -> str:
    return f"correlation={100 * step + int(found[1])}"


_LINE = re.compile(r"(\S+)\s+(\S+)\s+(\S+)\s+(\d+)\s+(\d+)(.*)")


def repeat(*lines: str, steps: int = 4, length: int = 10_000, **metadata: object) -> Trace:
    """Draw steps of `length` us that each have these lines, with times since its begin and numbers of calls."""
    picture = []
    for step in range(steps):
        picture.append(f"host user_annotation ProfilerStep#{step} {step * length} {length}")
        for line in "\n".join(lines).splitlines():
            if not line.strip():
                continue
            found = _LINE.fullmatch(line.strip())
            assert found is not None, line
            thread, category, name, start, duration, rest = found.groups()
            rest = _NUMBER.sub(partial(_number_in_step, step), rest)
            picture.append(f"{thread} {category} {name} {step * length + int(start)} {duration}{rest}")
    return draw("\n".join(picture), **metadata)


def beside_communication(launched: bool) -> Trace:
    """Draw steps in which an operator runs beside a collective, whose launch is recorded or not, as of Ascend."""
    return repeat(
        "host cuda_runtime cudaLaunchKernel 10 5 correlation=1",
        "gpu0 kernel gemm 20 100 correlation=1 stream=7",
        "host cuda_runtime cudaLaunchKernel 16 3 correlation=2",
        f"gpu0 kernel ncclDevKernel_AllReduce 120 5000 correlation={2 if launched else 9} stream=7",
        "host cpu_op aten::mm 20 9900",
        "host cuda_runtime cudaLaunchKernel 9930 5 correlation=3",
        "gpu0 kernel gemm 9940 50 correlation=3 stream=7",
        "host cuda_runtime cudaDeviceSynchronize 9945 46",
    )


def launched(name: str, start: int, duration: int, launch: int, number: int = 1, stream: int = 7) -> str:
    """Draw a kernel and the call of 5 us that launches it."""
    return (
        f"host cuda_runtime cudaLaunchKernel {launch} 5 correlation={number}\n"
        f"gpu0 kernel {name} {start} {duration} correlation={number} stream={stream}"
    )


def reasons_of(path: Path) -> set[str]:
    """Return the reasons that a module gives: parts of sentences that say why something is unknown or missing.

    They are what functions named so return, what `reasons` and `reason` are set to, and texts that are constants.
    """
    parsed = ast.parse(path.read_text(encoding="utf-8"))
    places: list[ast.AST] = [
        node.value
        for node in parsed.body
        if isinstance(node, ast.Assign) and _is_text(node.value) and ast.unparse(node.targets[0]).isupper()
    ]
    parts: set[int] = set()
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef) and _GIVES_REASONS.search(node.name):
            places.append(node)
        elif isinstance(node, ast.Assign) and any(_GIVES_REASONS.search(_base(each)) for each in node.targets):
            places.append(node.value)
        elif isinstance(node, ast.AugAssign) and _GIVES_REASONS.search(_base(node.target)):
            places.append(node.value)
        elif isinstance(node, ast.AnnAssign) and node.value and _GIVES_REASONS.search(_base(node.target)):
            places.append(node.value)
        elif isinstance(node, ast.keyword) and node.arg is not None and _GIVES_REASONS.search(node.arg):
            places.append(node.value)
        elif isinstance(node, ast.Call) and _GIVES_REASONS.search(_base(node.func)):
            places += node.args
        if isinstance(node, ast.JoinedStr | ast.Raise) or (isinstance(node, ast.Expr) and _is_text(node.value)):
            parts |= {id(part) for part in ast.walk(node) if part is not node}
    spelled = {
        _spell(node)
        for place in places
        for node in ast.walk(place)
        if id(node) not in parts and isinstance(node, ast.Constant | ast.JoinedStr)
    }
    return {each for each in spelled if _REASON.fullmatch(each)}


_GIVES_REASONS = re.compile(r"(?:^|_)(?:reasons?|unavailable|unknown|missing|why|few)(?:_|$)")
_REASON = re.compile(r"\S+ \S+ \S+ .*[^.]")


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _base(target: ast.expr) -> str:
    """Return the name of a function or of what is set: of `reasons["steps"]` it is reasons."""
    if isinstance(target, ast.Subscript):
        return _base(target.value)
    if isinstance(target, ast.Attribute):
        return _base(target.value) if target.attr == "update" else target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _spell(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    return node.value if isinstance(node.value, str) else ""
