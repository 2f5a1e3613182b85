"""Text for people."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"([0-9]{1,18})")


def shorten_middle(text: str, most: int) -> str:
    """At most so many characters; the middle of a longer text is left out."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def replace_unprintable(text: str) -> str:
    """Without what is no letter or sign: names in a trace may hold anything, also what moves a cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def natural_sort_key(name: str) -> list[tuple[int, str]]:
    """Sort key in which numbers inside a name count as numbers: rank, rank9, rank10."""
    texts_and_numbers = _NUMBER.split(name)
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(texts_and_numbers)]
