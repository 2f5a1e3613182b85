"""Regular expressions that are compiled when they are first needed, and rules that look for words before.

A command imports the rules of every view, a few hundred expressions, and matches some dozens of them. To compile
all would take longer than importing numpy, and 15 ms to compile the 169 that a first Overview asks about names,
most of which have none of their words.
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


class Words:
    """Finds words and patterns in texts.

    Words("softmax layernorm layer_norm", ("gemm", r"(?<!fb)gemm"))

    Most rules about names are words, and most names have none of a rule's: looking for them takes less time than
    compiling an expression. A pattern is only searched for in texts with the word that stands before it, which is
    part of all that it matches.
    """

    def __init__(self, words: str, *patterns: tuple[str, str]) -> None:
        self._words = tuple(words.split())
        self._patterns = tuple((word, lazy_regex(pattern)) for word, pattern in patterns)

    def search(self, text: str) -> bool:
        """Return whether a word or pattern occurs in a text."""
        for word in self._words:
            if word in text:
                return True
        for word, pattern in self._patterns:
            if word in text and pattern.search(text):
                return True
        return False


class AnyCase(Words):
    """Finds words and patterns, all written in lower case, in texts whatever their case."""

    def search(self, text: str) -> bool:
        """Return whether a word or pattern occurs in a text."""
        return super().search(fold_case(text))


_FOLDED = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
"""Other letters that `re.IGNORECASE` takes for ASCII ones: dotted I, dotless i, long s, the sign of kelvins."""


@lru_cache(maxsize=1)  # one text is searched for many patterns
def fold_case(text: str) -> str:
    """Return a text in lower case, in which an expression finds what it finds with `re.IGNORECASE` in the text.

    Without that flag, an expression is compiled in less time, and skips to the places where it can begin.
    """
    return text.lower() if text.isascii() else text.translate(_FOLDED).lower()
