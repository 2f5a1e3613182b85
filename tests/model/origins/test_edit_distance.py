"""Alignments with the fewest edits, compared with all that there are."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from torch_tb_profiler.model.origins import edit_distance
from torch_tb_profiler.model.origins.edit_distance import align_sequences
from torch_tb_profiler.model.trace import Int32

Pairs = frozenset[tuple[int, int]]


def codes(text: str) -> Int32:
    return np.array([ord(letter) for letter in text], np.int32)


def all_alignments(replay: str, capture: str, limit: int) -> list[tuple[int, Pairs]]:
    """Return every alignment with at most `limit` edits: the edits, and the pairs of equal elements."""

    @cache
    def rest(i: int, j: int, left: int) -> frozenset[tuple[int, Pairs]]:
        if i == len(replay) and j == len(capture):
            return frozenset({(0, frozenset())})
        found: set[tuple[int, Pairs]] = set()
        if i < len(replay) and j < len(capture):
            equal = replay[i] == capture[j]
            if equal or left:
                for edits, pairs in rest(i + 1, j + 1, left - (not equal)):
                    found.add((edits + (not equal), pairs | {(i, j)} if equal else pairs))
        for more_i, more_j in ((1, 0), (0, 1)):
            if left and i + more_i <= len(replay) and j + more_j <= len(capture):
                found |= {(edits + 1, pairs) for edits, pairs in rest(i + more_i, j + more_j, left - 1)}
        return frozenset(found)

    return list(rest(0, 0, limit))


@pytest.mark.parametrize("first_band", [0, 1, 32])
def test_what_is_found_is_what_all_alignments_say(monkeypatch: pytest.MonkeyPatch, first_band: int) -> None:
    monkeypatch.setattr(edit_distance, "FIRST_BAND", first_band)
    chance = random.Random(5)
    for _ in range(60):
        replay = "".join(chance.choices("abc", k=chance.randint(1, 5)))
        capture = "".join(chance.choices("abc", k=chance.randint(1, 5)))
        every = all_alignments(replay, capture, 7)
        fewest = min(edits for edits, _ in every)
        found = align_sequences(codes(replay), codes(capture), 6)
        assert found is not None and found.edits == fewest
        matched = len(replay) - (fewest - max(0, len(capture) - len(replay)))
        left_over = sum(letter in capture for letter in replay) > matched
        slack, doubt = (2, 1) if left_over else (0, 0)
        for i in range(len(replay)):
            places = {j for edits, pairs in every if edits <= fewest + slack for k, j in pairs if k == i}
            assert set(found.positions[i].tolist()) == places, (replay, capture, i)
            always = all(any(k == i for k, _ in pairs) for edits, pairs in every if edits <= fewest + doubt)
            assert bool(found.certain[i]) == always, (replay, capture, i)


def test_sequences_that_differ_in_more_than_the_limit_are_not_aligned() -> None:
    assert align_sequences(codes("abcdef"), codes("abcxyz"), 2) is None
    found = align_sequences(codes("abcdef"), codes("abcxyz"), 3)
    assert found is not None and found.edits == 3
