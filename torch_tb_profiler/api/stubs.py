"""The methods of `Views` for type checkers and editors, from what the views declare.

python -m torch_tb_profiler.api.stubs | ruff format - > torch_tb_profiler/api/views.pyi
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec.structs import fields

from torch_tb_profiler.api.views import NAMES
from torch_tb_profiler.view import OF_PAIR, PairView, View
from torch_tb_profiler.views import all_tabs

HEAD = '''"""Written by `torch_tb_profiler.api.stubs`; not to be edited."""

import inspect
from typing import Literal

from torch_tb_profiler.api.opened import Opened
from torch_tb_profiler.api.result import Result
from torch_tb_profiler.view import View
'''

FOOT = """
class ViewMethod:
    def __init__(self, opened: Opened, run: str, view: View) -> None: ...
    def __getattr__(self, part: str) -> ViewMethod: ...

NAMES: tuple[str, ...]

def signature(view: View) -> inspect.Signature: ...
def description(view: View) -> str: ...
"""


def stubs() -> str:
    """The text of `views.pyi`, before it is formatted."""
    imports: dict[str, set[str]] = defaultdict(set)
    classes, methods = [], []
    for tab in all_tabs():
        for view in (tab.view, *tab.parts):
            imports[view.payload.__module__].add(view.payload.__name__)
        if tab.parts:
            name = f"_{tab.slug.title().replace('_', '')}"
            classes += ["", f"class {name}:", *_method("__call__", tab.view)]
            for part in tab.parts:
                classes += _method(part.slug.partition("/")[2], part)
            methods += [
                "    @property",
                f"    def {tab.slug}(self) -> {name}:",
                f'        """{tab.view.title}."""',
            ]
        else:
            methods += _method(tab.slug, tab.view)
    lines = [
        f"from {module} import {', '.join(sorted(imports[module], key=str.lower))}" for module in sorted(imports)
    ]
    own = [
        "",
        "class Views:",
        "    _opened: Opened",
        "    name: str",
        "    def __init__(self, opened: Opened, name: str) -> None: ...",
    ]
    return "\n".join([HEAD.rstrip(), *lines, *classes, *own, *methods, FOOT])


def _method(name: str, view: View) -> Iterator[str]:
    given = [f"{each}: {'str | int' if each == 'span' else 'str'} | None = None" for each in NAMES]
    given += [f"{each}: str | None = None" for each in OF_PAIR if isinstance(view, PairView)]
    for field in fields(view.params):
        given.append(f"{field.name}: {_spelled(field.type)}" + ("" if field.required else f" = {field.default!r}"))
    yield f"    def {name}(self, *, {', '.join(given)}) -> Result[{view.payload.__name__}]:"
    yield f'        """{view.title}."""'


def _spelled(kind: Any) -> str:
    """A type as it is written."""
    if get_origin(kind) is Annotated:
        return _spelled(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(kind)))}]"
    if get_args(kind):
        return " | ".join(_spelled(each) for each in get_args(kind))
    return "None" if kind is type(None) else str(kind.__name__)


if __name__ == "__main__":
    sys.stdout.write(stubs())
