"""Regular expressions that are compiled when they are first needed.

A command imports the rules of every view, a few hundred expressions, and matches a dozen of them. Compiling all of
them takes longer than importing numpy.
"""

from __future__ import annotations

import re
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
