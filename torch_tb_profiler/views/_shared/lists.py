"""Parameters that hold several values, as text with commas between them."""

from __future__ import annotations

from torch_tb_profiler.base.errors import UsageError


def parse_texts(text: str) -> list[str]:
    """The parts; [] of an empty text."""
    return [part for part in text.split(",") if part]


def parse_numbers(name: str, text: str) -> list[int]:
    """The parts as numbers; UsageError names the parameter if one is no integer."""
    try:
        return [int(part) for part in parse_texts(text)]
    except ValueError as error:
        raise UsageError(f"{name} cannot be {text!r}", hint="numbers with commas between them") from error
