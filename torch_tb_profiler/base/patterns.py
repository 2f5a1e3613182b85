"""Regular expressions that are compiled when they are first needed.

A command imports the rules of every view, a few hundred expressions, and matches a dozen of them. Compiling all of
them takes longer than importing numpy.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, AnyStr, cast


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression like `re.compile`, which is compiled with its first use.

    An expression that is no valid one raises `re.error` only then.
    """
    return cast(re.Pattern[AnyStr], _LazyRegex(pattern, flags))


class _LazyRegex:
    """Stands for a compiled expression: each of its methods is looked up there once, and then kept."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of protocols such as pickle, also before `_source` is there
            raise AttributeError(name)
        pattern, flags = self._source
        value = getattr(re.compile(pattern, flags), name)
        setattr(self, name, value)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return lazy_regex, self._source


class AnyCase:
    """Finds a pattern in texts whatever their case, quicker than `re.IGNORECASE`; not the text that it matches.

    Where case counts, the expression skips to the places where it can begin. The pattern has no upper case.
    """

    def __init__(self, pattern: str) -> None:
        self._folded = lazy_regex(pattern)
        self._ignoring = lazy_regex(pattern, re.IGNORECASE)

    def search(self, text: str) -> bool:
        """Return whether the pattern occurs in a text."""
        folded = _lower(text)
        return (
            self._ignoring.search(text) is not None if folded is None else self._folded.search(folded) is not None
        )

    def fullmatch(self, text: str) -> bool:
        """Return whether the pattern is an entire text."""
        folded = _lower(text)
        if folded is None:
            return self._ignoring.fullmatch(text) is not None
        return self._folded.fullmatch(folded) is not None

    def groups(self, text: str) -> list[str]:
        """Return the name of the last group of each place where the pattern occurs."""
        folded = _lower(text)
        found = self._ignoring.finditer(text) if folded is None else self._folded.finditer(folded)
        return [str(match.lastgroup) for match in found]


@lru_cache(maxsize=1)  # one text is searched for many patterns
def _lower(text: str) -> str | None:
    """Return a text in lower case, None if it isn't ASCII: other letters have several lower and upper cases."""
    return text.lower() if text.isascii() else None
