"""Names of device code as people say them: without return type, parameters and template arguments."""

from __future__ import annotations

import re

SPOKEN = 48
"""Characters of a name in a sentence."""

_CPLUSPLUS = re.compile(r"::|<|^void ")
_SPECIFIER = re.compile(r"^(?:void|__global__|static|inline)\s+")


def short_kernel_name(name: str) -> str:
    """`void at::native::(anonymous namespace)::foo<float, 4>(int, ...)` becomes `at::native::foo<…>`."""
    text = name.strip()
    if not _CPLUSPLUS.search(text):
        return text
    text = _SPECIFIER.sub("", text).replace("(anonymous namespace)::", "")
    short, depth = "", 0
    for before, letter in zip(" " + text, text, strict=False):
        if letter == "<" and not short.endswith("operator"):
            short += "" if depth else "<…>"
            depth += 1
        elif letter == ">" and depth > 0 and before != "-":
            depth -= 1
        elif letter == "(" and depth == 0:
            break
        elif depth == 0:
            short += letter
    short = short.strip()
    return name if short in ("", "<…>") else short


def spoken_name(name: str) -> str:
    """A name in a sentence: cut where it is long."""
    return name if len(name) <= SPOKEN else f"{name[: SPOKEN - 1]}…"


def spoken_kernel_name(name: str) -> str:
    """A kernel's name in a sentence: short, and cut where even that is long."""
    return spoken_name(short_kernel_name(name))
