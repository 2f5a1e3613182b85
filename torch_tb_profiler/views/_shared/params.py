"""Parameters of views: lists in a text with commas, and what a link has to carry."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.base.errors import UsageError


def parse_texts(text: str) -> list[str]:
    """Return the parts between commas; [] for an empty text."""
    return [part for part in text.split(",") if part]


def parse_numbers(name: str, text: str) -> list[int]:
    """Return the parts as integers. Raises UsageError, which names the parameter, if one is no integer."""
    try:
        return [int(part) for part in parse_texts(text)]
    except ValueError as error:
        raise UsageError(f"{name} cannot be {text!r}", hint="use integers separated by commas") from error


def set_params(params: msgspec.Struct) -> dict[str, object]:
    """Return the parameters that differ from their defaults, for a link that keeps them."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(params)}
    values = msgspec.structs.asdict(params)
    return {name: value for name, value in values.items() if value != defaults[name]}
