"""Sentences for people: made once, shown alike by the page, the command line and Python.

text("Rank {rank} keeps the others waiting.", rank=Phrase("2", link("trace", worker="rank2")))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Formatter
from urllib.parse import urlencode

import msgspec


class Phrase(msgspec.Struct, frozen=True):
    """A part of a sentence. A click on one with a `link` opens what the link names: its evidence."""

    text: str
    link: str | None = None


Text = tuple[Phrase, ...]
"""A sentence or a few, in order; the texts joined are the whole."""


def link(tab: str, **state: object) -> str:
    """What a click opens: a tab, and the state of the page there (`operators?search=conv`). None is left out.

    `run`, `worker` and `span` choose another trace.
    """
    given = {name: value for name, value in state.items() if value is not None}
    return f"{tab}?{urlencode(given)}" if given else tab


def set_params(params: msgspec.Struct) -> dict[str, object]:
    """The parameters of a view that were set, for a `link` that keeps them."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(params)}
    values = msgspec.structs.asdict(params)
    return {name: value for name, value in values.items() if value != defaults[name]}


def text(template: str, **parts: str | Phrase | Text) -> Text:
    """The template with its `{names}` replaced. What is put in is not read again: names in a trace are hostile."""
    phrases: list[Phrase] = []
    for literal, name, _, _ in Formatter().parse(template):
        phrases.append(Phrase(literal))
        if name is not None:
            part = parts[name]
            phrases += (Phrase(part),) if isinstance(part, str) else (part,) if isinstance(part, Phrase) else part
    return _joined(phrases)


def reason_texts(reasons: Mapping[str, str | Text]) -> dict[str, Text]:
    """Why fields are null, by field; plain words open nothing."""
    return {name: (Phrase(words),) if isinstance(words, str) else words for name, words in reasons.items()}


def sentences(*texts: Text) -> Text:
    """Texts one after the other, a space between them; empty ones are left out."""
    spaced: list[Phrase] = []
    for each in texts:
        if each:
            spaced += [Phrase(" "), *each] if spaced else each
    return _joined(spaced)


def join_phrases(items: Iterable[str | Phrase]) -> Text:
    """One; one and two; one, two and three."""
    phrases = [item if isinstance(item, Phrase) else Phrase(item) for item in items]
    spaced: list[Phrase] = []
    for left, phrase in zip(range(len(phrases) - 1, -1, -1), phrases, strict=True):
        spaced += [phrase, Phrase(", " if left > 1 else " and " if left else "")]
    return _joined(spaced)


def plain(text: Iterable[Phrase]) -> str:
    """The words alone."""
    return "".join(phrase.text for phrase in text)


def _joined(phrases: Iterable[Phrase]) -> Text:
    """Without empty phrases; neighbors that open nothing are one."""
    joined: list[Phrase] = []
    for phrase in phrases:
        if joined and phrase.link is None and joined[-1].link is None:
            joined[-1] = Phrase(joined[-1].text + phrase.text)
        elif phrase.text:
            joined.append(phrase)
    return tuple(joined)
