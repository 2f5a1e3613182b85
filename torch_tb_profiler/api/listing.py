"""The views as text: what each answers, and its parameters."""

from __future__ import annotations

from msgspec.structs import fields

from torch_tb_profiler.view import View, options_of
from torch_tb_profiler.views import all_views


def listing() -> str:
    """Every view: what it answers, and its parameters with their defaults."""
    lines = []
    for view in all_views():
        answers = (view.payload.__doc__ or view.title).split("\n", 1)[0]
        lines.append(f"  {view.slug:24}{answers}\n")
        lines += [f"      {parameter}\n" for parameter in _parameters(view)]
    return "".join(lines)


def _parameters(view: View) -> list[str]:
    described = []
    for field in fields(view.params):
        options = "|".join(options_of(field.type))
        default = "required" if field.required else f"default {field.default!r}"
        described.append(f"{field.name}{f'={options}' if options else ''} ({default})")
    return described
