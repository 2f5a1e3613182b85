"""The views as text: what each answers, and its parameters."""

from __future__ import annotations

import inspect
import re

from msgspec.structs import fields

from torch_tb_profiler.view import View, options_of
from torch_tb_profiler.views import all_views


def listing() -> str:
    """Every view: what it answers, and its parameters with their defaults."""
    lines = []
    for view in all_views():
        lines.append(f"  {view.slug:24}{answer_of(view)}\n")
        lines += [f"      {parameter}\n" for parameter in _parameters(view)]
    return "".join(lines)


def answer_of(view: View) -> str:
    """What a view answers, in a sentence."""
    if view.answers:
        return view.answers
    first = inspect.cleandoc(view.payload.__doc__ or view.title).split("\n\n", 1)[0]
    return re.split(r"(?<=[.;]) ", " ".join(first.split()), maxsplit=1)[0].rstrip(".;") + "."


def _parameters(view: View) -> list[str]:
    described = []
    for field in fields(view.params):
        options = "|".join(options_of(field.type))
        default = "required" if field.required else f"default {field.default!r}"
        described.append(f"{field.name}{f'={options}' if options else ''} ({default})")
    return described
