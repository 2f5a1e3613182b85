"""Figures after "up to" or "at most" are rounded up, after "at least" down: to nearest, they may be false."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter

import torch_tb_profiler

PACKAGE = Path(torch_tb_profiler.__file__).parent
SOURCES = sorted([*PACKAGE.glob("views/**/*.py"), *PACKAGE.glob("session/*.py")])

_BOUND = re.compile(r"\b(up to|at most|at least) $", re.IGNORECASE)
_FIGURE = re.compile(r"\bformat_(?:duration|ratio|bytes|number|rate)\((?![A-Z_]+\))")
"""What formats a figure; a threshold is exact as it is."""

_SIDES = {"up to": "'up'", "at most": "'up'", "at least": "'down'"}


def _bounds(source: str) -> Iterator[tuple[str, str]]:
    """Yield (bound, expression) of every figure that a bound stands before, in a template or an f-string."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        values = {
            target.id: ast.unparse(node.value)
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.JoinedStr):
                yield from _pairs([_part(each) for each in node.values], values)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "text":
                yield from _of_template(node, values)


def _part(each: ast.expr) -> str:
    """Return the text of a part of an f-string, or the expression in it."""
    if isinstance(each, ast.Constant):
        return str(each.value)
    return ast.unparse(each.value) if isinstance(each, ast.FormattedValue) else ast.unparse(each)


def _of_template(call: ast.Call, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    given = {each.arg: ast.unparse(each.value) for each in call.keywords if each.arg}
    for template in [each.value for each in ast.walk(call.args[0]) if isinstance(each, ast.Constant)]:
        parts = []
        for literal, name, _, _ in Formatter().parse(str(template)):
            parts += [each for each in (literal, given.get(name or "", "")) if each]
        yield from _pairs(parts, values)


def _pairs(parts: list[str], values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each bound at the end of a part, or said by an expression in some case, and the expression after."""
    for before, after in zip(parts, parts[1:], strict=False):
        expression = values.get(after, after)
        text = [_BOUND.search(before), *map(_BOUND.search, re.findall(r"'([^']*)'", values.get(before, before)))]
        for found in text:
            if found is not None and _FIGURE.search(expression):
                yield found[1].lower(), expression


def _wrongly_rounded(source: str) -> list[str]:
    return [f"{bound} {each}" for bound, each in _bounds(source) if _SIDES[bound] not in each]


def test_every_bound_is_rounded_to_the_side_on_which_it_holds() -> None:
    found = {path.name: _wrongly_rounded(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert sum(len(list(_bounds(path.read_text(encoding="utf-8")))) for path in SOURCES) > 10


def test_a_bound_that_is_rounded_to_nearest_is_found() -> None:
    template = 'def f(ns, short):\n    return text("{most}{saved}.", most="up to " if short else "", saved={})\n'
    written = "def f(ns):\n    return f'at least {}'\n"
    for wrong in ("format_duration(ns)", "Phrase(format_ratio(ns), link)"):
        assert _wrongly_rounded(template.replace("saved={}", f"saved={wrong}"))
        assert _wrongly_rounded(written.replace("{}", f"{{{wrong}}}"))
    assert not _wrongly_rounded(template.replace("saved={}", "saved=format_duration(ns, 'up')"))
    assert not _wrongly_rounded(written.replace("{}", '{format_duration(ns, "down")}'))
