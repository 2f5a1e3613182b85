"""Threads that decode a type for the first time at once do no harm, and the package decodes no other way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch_tb_profiler

PACKAGE = Path(torch_tb_profiler.__file__).parent

RACE = """
import sys
from threading import Barrier, Thread

import msgspec

from torch_tb_profiler.base.threadsafe import threadsafe

FIELDS = "".join(f"    field_{i}: 'list[int] | None' = None\\n" for i in range(30))
INNER = "class Inner(msgspec.Struct):\\n" + FIELDS
OUTER = "class Outer(msgspec.Struct):\\n    items: 'list[Inner]'\\n    one: 'Inner | None'\\n"
sys.setswitchinterval(1e-6)
decoded = []
for _ in range(100):
    exec(INNER + OUTER)
    barrier = Barrier(8)

    def decode():
        barrier.wait()
        value = {"items": [{"field_1": [1]}], "one": {"field_2": [3]}}
        decoded.append(msgspec.convert(value, threadsafe(Outer)).one.field_2)

    threads = [Thread(target=decode) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
assert decoded == [[3]] * 800
"""


def test_threads_may_decode_a_type_for_the_first_time_at_once() -> None:
    """Another process runs it: without the lock it ends with a segmentation fault, nearly each time."""
    assert subprocess.run([sys.executable, "-c", RACE], cwd=PACKAGE.parent, check=False).returncode == 0


def test_every_typed_value_is_decoded_this_way() -> None:
    """Types that Python has, and those that only one object knows, hold nothing that threads share."""
    plain = ("str", "dict[", "list[str]", "list[tuple[", "list[msgspec.Raw]", "list[any_event]")
    found = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}: {ast.unparse(type_)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for call, type_ in typed_decoding(ast.parse(path.read_text("utf-8")))
        if not ast.unparse(type_).startswith(("threadsafe(", *plain))
    ]
    assert found == ["base/threadsafe.py:26: type_"]


def typed_decoding(tree: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield every call of msgspec that decodes, with the type that it decodes to."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).startswith("msgspec."):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        position = {"Decoder": 0, "convert": 1, "decode": 1}.get(name)
        if position is None:
            continue
        type_ = keywords.get("type", call.args[position] if len(call.args) > position else None)
        if type_ is not None:
            yield call, type_
