"""Grammar of generated sentences: plurals, articles, agreement, lists, and what shares and times refer to.

f"{plural(count, 'copy')} {agree(count, 'is', 'are')} pageable"      1 copy is pageable; 1,200 copies are pageable
f"{with_article('NPU')} with {with_article('user annotation')}"      an NPU with a user annotation
f"idle for 68% of {share_base(steps, recorded)}"                     of an average step, of the step, of the trace
f"costs 41 ms {per_step(recorded)}"                                  per step, in the recording
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from torch_tb_profiler.base.patterns import lazy_regex

_SIBILANTS = ("s", "x", "z", "ch", "sh")
_VOWELS = frozenset("aeiou")
_ACRONYM = lazy_regex(r"[A-Z](?![a-z])")
_VOWEL_LETTERS = "AEFHILMNORSX"
"""Letters whose English name begins with a vowel sound: an NPU, an HPU, an XPU, but a GPU."""
_VOWEL_SOUND = lazy_regex(r"[aeio]|u(?!ni|s[eu])|8|1[18](?![0-9])|hour|honest", re.IGNORECASE)
_LIKE_ONE = lazy_regex(r"(?:one|once)\b|eu", re.IGNORECASE)


def plural(count: int, noun: str) -> str:
    """Return the count with its noun: 1 block, 1,200 blocks, 2 memory copies, 3 processes."""
    return f"{count:,} {noun if count == 1 else pluralize(noun)}"


def pluralize(noun: str) -> str:
    """Return the plural of a regular noun or of a phrase that ends in one."""
    if noun.endswith(_SIBILANTS):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in _VOWELS else f"{noun}s"


def all_of(count: int, noun: str) -> str:
    """Return "the rank" for one, "both ranks", or "all 1,200 ranks"."""
    if count == 2:
        return f"both {pluralize(noun)}"
    return f"the {noun}" if count == 1 else f"all {plural(count, noun)}"


def agree(count: int, one: str, many: str) -> str:
    """Return the word that agrees with a count: agree(1, "is", "are"), agree(2, "it", "them")."""
    return one if count == 1 else many


def with_article(noun: str) -> str:
    """Return the noun with "a" or "an", by how its first word is spoken."""
    if _ACRONYM.match(noun):
        vowel = noun[0] in _VOWEL_LETTERS
    else:
        vowel = bool(_VOWEL_SOUND.match(noun)) and not _LIKE_ONE.match(noun)
    return f"{'an' if vowel else 'a'} {noun}"


def capitalize(text: str) -> str:
    """Return the text with a capital first letter; the others stay, as names need theirs."""
    return text[:1].upper() + text[1:]


def join_words(words: Sequence[str]) -> str:
    """Return "one", "one and two", or "one, two and three"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


MAX_LISTED_OPTIONS = 20
"""Most names that a message lists of what could be chosen instead."""


def list_options(what: str, names: Iterable[str]) -> str:
    """Return what could be chosen instead of a name that isn't there: "steps: 1, 2 and 3 more"."""
    listed = list(names)
    more = len(listed) - MAX_LISTED_OPTIONS
    return f"{what}: {', '.join(listed[:MAX_LISTED_OPTIONS])}{f' and {more:,} more' if more > 0 else ''}"


def share_base(steps: int, recorded: bool, has_odd: bool = False, noun: str = "step") -> str:
    """Return what percentages refer to: "an average step", "the step" (one is no average), or "the trace".

    steps     typical steps that were averaged
    recorded  False where the trace records no steps and is shown as one
    has_odd   whether odd steps were left out: then it is "a typical step"
    noun      what a step is, see `model.steps.step_noun`
    """
    if not recorded:
        return "the trace"
    if has_odd:
        return f"a typical {noun}"
    return f"the {noun}" if steps == 1 else f"an average {noun}"


def per_step(recorded: bool, noun: str = "step") -> str:
    """Return what times refer to: "per step", or "in the recording" where no steps are recorded.

    noun  what a step is, see `model.steps.step_noun`
    """
    return f"per {noun}" if recorded else "in the recording"


_STEP = lazy_regex(r"\{[^{}]*\}|`[^`]*`|\b([Aa] (?:training )?)?step(s?)\b")


def say_steps(template: str, noun: str) -> str:
    """Return the template with `noun` for a step; names in braces and code keep theirs."""
    if noun == "step":
        return template

    def replaced(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0]
        return f"{with_article(noun) if found[1] else noun}{found[2]}"

    return _STEP.sub(replaced, template)
