"""The identifiers in the name of a kernel, as compilers of C++ write them: mangled or not.

void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int, ...)
     |------------- path --------------------| |-------- arguments --------|
"""

from __future__ import annotations

import re

import msgspec

MAX_NAME_LENGTH = 4096
"""Characters of a name that are read: the parameters beyond say nothing more."""

_CPLUSPLUS = re.compile(r"::|<|\(|^void ")
_RETURN = re.compile(r"^(?:void|bool|__global__|static|inline|std::enable_if<.*?>::type)\s+")
_ANONYMOUS = "(anonymous namespace)::"
_LENGTH = re.compile(r"\d{1,4}")


class KernelIdentifiers(msgspec.Struct, frozen=True):
    """`path` is the function with its namespaces; `arguments` are those of its templates, maybe mangled."""

    path: str
    arguments: str

    @property
    def function(self) -> str:
        """The function without its namespaces."""
        return self.path.rpartition("::")[2]


def parse_identifiers(name: str) -> KernelIdentifiers:
    """What a name consists of; a name of no C++ is its own path."""
    text = name[:MAX_NAME_LENGTH].strip()
    if text.startswith("_Z"):
        return _mangled(text)
    if not _CPLUSPLUS.search(text):
        return KernelIdentifiers(text, "")
    return _spelled(text)


def _spelled(text: str) -> KernelIdentifiers:
    previous = None
    while text != previous:
        previous, text = text, _RETURN.sub("", text)
    text = text.replace(_ANONYMOUS, "")
    path: list[str] = []
    arguments: list[str] = []
    depth = 0
    for before, letter in zip(" " + text, text, strict=False):
        if letter == "<" and "".join(path[-8:]) != "operator":
            depth += 1
            if depth > 1:
                arguments.append(letter)
            elif arguments:
                arguments.append(", ")
        elif letter == ">" and depth > 0 and before != "-":
            depth -= 1
            if depth > 0:
                arguments.append(letter)
        elif letter == "(" and depth == 0:
            break
        else:
            (arguments if depth else path).append(letter)
    joined = "".join(path).strip()
    return KernelIdentifiers(joined, "".join(arguments).strip()) if joined else KernelIdentifiers(text, "")


def _mangled(text: str) -> KernelIdentifiers:
    """An Itanium name: each identifier of the path is preceded by its length; the arguments stay as they are."""
    path: list[str] = []
    at = 3 if text.startswith("_ZN") else 2
    while (match := _LENGTH.match(text, at)) is not None:
        at = match.end() + int(match[0])
        word = text[match.end() : at]
        if not word.startswith("_GLOBAL__"):
            path.append(word)
    return KernelIdentifiers("::".join(path), text[at:]) if path else KernelIdentifiers(text, "")
