"""Parse the identifiers in the C++ name of a kernel, mangled or not.

void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int, ...)
     |------------- path --------------------| |-------- arguments --------|
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from torch_tb_profiler.base.patterns import lazy_regex

MAX_NAME_LENGTH = 4096
"""Characters of a name that are parsed; the parameters behind add nothing."""

_RETURN = lazy_regex(r"^(?:void|bool|__global__|static|inline|std::enable_if<.*?>::type)\s+")
_ANONYMOUS = "(anonymous namespace)::"
_BRACKETS = lazy_regex(r"[<>(]")
_LENGTH = lazy_regex(r"\d{1,4}")


class KernelIdentifiers(msgspec.Struct, frozen=True):
    """The parts of a kernel's name.

    path       the function with its namespaces
    arguments  those of its templates, maybe mangled
    """

    path: str
    arguments: str

    @property
    def function(self) -> str:
        """Return the function without its namespaces."""
        return self.path.rpartition("::")[2]


@lru_cache(maxsize=65536)  # each of several rules parses the names of a trace
def parse_identifiers(name: str) -> KernelIdentifiers:
    """Split a kernel's name into its parts; a name that isn't C++ is its own path."""
    text = name[:MAX_NAME_LENGTH].strip()
    if text.startswith("_Z"):
        return _parse_mangled(text)
    if not ("::" in text or "<" in text or "(" in text or text.startswith("void ")):
        return KernelIdentifiers(text, "")
    return _parse_demangled(text)


def _parse_demangled(text: str) -> KernelIdentifiers:
    previous = None
    while text != previous:
        previous, text = text, _RETURN.sub("", text)
    text = text.replace(_ANONYMOUS, "")
    path = arguments = ""
    depth = begin = 0
    for match in _BRACKETS.finditer(text):
        at, bracket = match.start(), match[0]
        if bracket == "(" and depth:
            continue
        path, arguments = _add_part(path, arguments, depth, text[begin:at])
        begin = at + 1
        if bracket == "<" and not path.endswith("operator"):
            depth += 1
            if depth > 1:
                arguments += bracket
            elif arguments:
                arguments += ", "
        elif bracket == ">" and depth > 0 and text[at - 1] != "-":
            depth -= 1
            if depth > 0:
                arguments += bracket
        elif bracket == "(":
            break
        else:
            path, arguments = _add_part(path, arguments, depth, bracket)
    else:
        path, arguments = _add_part(path, arguments, depth, text[begin:])
    joined = path.strip()
    return KernelIdentifiers(joined, arguments.strip()) if joined else KernelIdentifiers(text, "")


def _add_part(path: str, arguments: str, depth: int, part: str) -> tuple[str, str]:
    return (path, arguments + part) if depth else (path + part, arguments)


def _parse_mangled(text: str) -> KernelIdentifiers:
    """Parse an Itanium name, in which the length of each identifier precedes it; arguments stay mangled."""
    path: list[str] = []
    position = 3 if text.startswith("_ZN") else 2
    while (match := _LENGTH.match(text, position)) is not None:
        position = match.end() + int(match[0])
        word = text[match.end() : position]
        if not word.startswith("_GLOBAL__"):
            path.append(word)
    return KernelIdentifiers("::".join(path), text[position:]) if path else KernelIdentifiers(text, "")
