"""Sentences for people, built once and shown alike by the page, the command line and Python; and names in them.

text("Rank {rank} is a straggler.", rank=Phrase("2", link("trace", worker="rank2")))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import Formatter
from urllib.parse import urlencode

import msgspec

from torch_tb_profiler.base.grammar import all_of
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.devices import device_name

MAX_NAME_LENGTH = 48
"""Characters of a name in a sentence; longer ones are cut."""

_FRAME = lazy_regex(r"^(?:.*[/\\])?(?P<file>[^/\\]+)\((?P<line>\d+)\): (?P<function>.+)$", re.DOTALL)


class Phrase(msgspec.Struct, frozen=True):
    """A part of a sentence. A click on one with a `link` opens what the link names: its evidence."""

    text: str
    link: str | None = None


Text = tuple[Phrase, ...]
"""One or more sentences: the texts of the phrases, joined."""


def link(tab: str, **state: object) -> str:
    """Return what a click opens: a tab and its state in the page (`operators?search=conv`). None is left out.

    `run`, `worker` and `span` choose another trace.
    """
    set_parameters = {name: value for name, value in state.items() if value is not None}
    return f"{tab}?{urlencode(set_parameters)}" if set_parameters else tab


def text(template: str, **parts: str | Phrase | Text) -> Text:
    """Fill the `{names}` of a template. Parts are not parsed again, because names in a trace may hold anything."""
    phrases: list[Phrase] = []
    for literal, name, _, _ in Formatter().parse(template):
        phrases.append(Phrase(literal))
        if name is not None:
            part = parts[name]
            phrases += (Phrase(part),) if isinstance(part, str) else (part,) if isinstance(part, Phrase) else part
    return _merge(phrases)


def sentences(*texts: Text) -> Text:
    """Join texts with spaces; empty ones are left out."""
    spaced: list[Phrase] = []
    for each in texts:
        if each:
            spaced += [Phrase(" "), *each] if spaced else each
    return _merge(spaced)


def first_sentence(texts: Text) -> Text:
    """Return the phrases up to the first full stop; one inside a linked name ends no sentence."""
    first: list[Phrase] = []
    for phrase in texts:
        stop = phrase.text.find(". ") if phrase.link is None else -1
        if stop >= 0:
            first.append(Phrase(phrase.text[: stop + 1]))
            break
        first.append(phrase)
    return tuple(first)


def replace_sentence(texts: Text, old: Text, new: Text) -> Text:
    """Return `texts` with `new` in place of the sentence `old`, which has no links; names in links don't match."""
    replaced: list[Phrase] = []
    for phrase in texts:
        before, found, after = phrase.text.partition(plain(old))
        replaced += [Phrase(before), *new, Phrase(after)] if found and phrase.link is None else [phrase]
    return _merge(replaced)


def join_phrases(items: Iterable[str | Phrase]) -> Text:
    """Join phrases as `grammar.join_words` does words: one; one and two; one, two and three."""
    phrases = [item if isinstance(item, Phrase) else Phrase(item) for item in items]
    spaced: list[Phrase] = []
    for left, phrase in zip(range(len(phrases) - 1, -1, -1), phrases, strict=True):
        spaced += [phrase, Phrase(", " if left > 1 else " and " if left else "")]
    return _merge(spaced)


def plain(text: Iterable[Phrase]) -> str:
    """Return the words without their links."""
    return "".join(phrase.text for phrase in text)


def reason_texts(reasons: Mapping[str, str | Text]) -> dict[str, Text]:
    """Return why fields are null, by field, as texts; plain strings get no link."""
    return {name: (Phrase(words),) if isinstance(words, str) else words for name, words in reasons.items()}


def _merge(phrases: Iterable[Phrase]) -> Text:
    """Drop empty phrases and join neighbors without a link."""
    merged: list[Phrase] = []
    for phrase in phrases:
        if merged and phrase.link is None and merged[-1].link is None:
            merged[-1] = Phrase(merged[-1].text + phrase.text)
        elif phrase.text:
            merged.append(phrase)
    return tuple(merged)


def shorten_name(name: str) -> str:
    """Cut a name to MAX_NAME_LENGTH characters."""
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"


def shorten_frame(name: str) -> str:
    """Return a Python frame as a sentence names it: `prepare_batch (train.py:42)`."""
    match = _FRAME.match(name)
    if match is None:
        return shorten_name(name)
    return f"{shorten_name(match['function'])} ({shorten_name(match['file'])}:{match['line']})"


def worker_name(rank: int | None, worker: str) -> str:
    """Return how a sentence calls a worker: "rank 3", else its name, which may be a process id."""
    if rank is not None:
        return f"rank {rank}"
    return f"worker {worker}" if worker.isdecimal() else worker


def device_noun(kind: str | None) -> str:
    """Return the noun for devices of a kind (see `device_kind`): GPU, NPU, HPU; "device" where it is unknown."""
    return "device" if kind in (None, "other") else device_name(kind or "", "").strip()


def join_device_names(kind: str, ids: Iterable[int]) -> str:
    """Return the subject of a sentence about one or several devices: "GPU 0", "both GPUs", "all 8 GPUs".

    A kind that is unknown gives "the device", "both devices" and so on.
    """
    numbers, noun = list(ids), device_noun(kind)
    if len(numbers) > 1:
        return all_of(len(numbers), noun)
    return f"{noun} {numbers[0]}" if numbers and noun != "device" else f"the {noun}"
