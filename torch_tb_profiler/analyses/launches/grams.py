"""Which stretches of a list of codes occur more than once, by ranks of stretches of growing length.

    codes   a b c a b c d      a, b, c, d are numbered from 0; a negative code belongs to no stretch
    rank 2  0 1 2 0 1 3 -      the stretch of two codes that begins here
    rank 4  0 1 ...            composed of two ranks of two: equal numbers, equal stretches

Doubling as in the construction of suffix arrays (Karp, Miller and Rosenberg, 1972), but only where a stretch
occurs often enough: what occurs too rarely is part of no longer one that does not.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import Int64

LENGTHS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)
"""Lengths that are asked for; those between are found by extending what occurs (`maximal`)."""

PER_LENGTH = 64
"""Stretches of each length that are kept: those with the most time."""


def repeats(codes: Int64, before: Int64, least: int) -> list[tuple[int, Int64]]:
    """(length, positions) of stretches that occur at least `least` times without overlap, in no order.

    `before`, int64[n + 1]: what the codes before each position weigh. None is a repetition of a shorter stretch.
    """
    ranks = {1: _frequent(codes, np.flatnonzero(codes >= 0), least)}
    repeated = []
    for length in LENGTHS:
        if length >= len(codes):
            break
        rank, done = None, 0
        for power in sorted(_powers(ranks, length, least), reverse=True):
            while done + power <= length:
                rank = ranks[power] if rank is None else _compose(rank, ranks[power], done, least)
                done += power
        assert rank is not None  # 1 is a power
        repeated += _heaviest(codes, rank, before, length, least)
    return repeated


def _powers(ranks: dict[int, Int64], most: int, least: int) -> list[int]:
    """Powers of two up to the length, their ranks computed."""
    power = 1
    while power * 2 <= most:
        if power * 2 not in ranks:
            ranks[power * 2] = _compose(ranks[power], ranks[power], power, least)
        power *= 2
    return [each for each in ranks if each <= most]


def _compose(left: Int64, right: Int64, shift: int, least: int) -> Int64:
    """Ranks of what begins as `left` says and goes on, `shift` later, as `right` says."""
    place = np.flatnonzero(left[: len(left) - shift] >= 0)
    place = place[right[place + shift] >= 0]
    keys = np.full(len(left), -1, np.int64)
    keys[place] = left[place] * (int(right.max(initial=0)) + 1) + right[place + shift]
    return _frequent(keys, place, least)


def _frequent(keys: Int64, place: Int64, least: int) -> Int64:
    """Keys numbered from 0 at these places; -1 elsewhere, and where a key occurs less than `least` times."""
    ranks = np.full(len(keys), -1, np.int64)
    if len(place) == 0:
        return ranks
    order = np.argsort(keys[place], kind="stable")
    ordered = keys[place][order]
    first = np.append(True, ordered[1:] != ordered[:-1])
    number = np.cumsum(first) - 1
    counts = np.bincount(number)
    often = counts >= least
    dense = np.cumsum(often) - 1
    ranks[place[order]] = np.where(often[number], dense[number], -1)
    return ranks


def _heaviest(codes: Int64, rank: Int64, before: Int64, length: int, least: int) -> list[tuple[int, Int64]]:
    place = np.flatnonzero(rank >= 0)
    if len(place) == 0:
        return []
    ids = rank[place]
    weight = np.bincount(ids, (before[place + length] - before[place]).astype(np.float64))
    best = np.argsort(-weight, kind="stable")[:PER_LENGTH]
    turn = np.full(len(weight), -1, np.int16)
    turn[best] = np.arange(len(best))
    turns = turn[ids]
    place, turns = place[turns >= 0], turns[turns >= 0]
    order = np.argsort(turns, kind="stable")
    bounds = np.append(0, np.cumsum(np.bincount(turns)))
    heaviest = []
    for low, high in zip(bounds[:-1], bounds[1:], strict=True):
        positions = place[order[low:high]]
        if is_repetition(codes[positions[0] : positions[0] + length]):
            continue
        apart = without_overlap(positions, length)
        if len(apart) >= least:
            heaviest.append((length, apart))
    return heaviest


def is_repetition(stretch: Int64) -> bool:
    """True if a shorter stretch, repeated, gives this one."""
    length = len(stretch)
    periods = (period for period in range(1, length // 2 + 1) if length % period == 0)
    return any(np.array_equal(stretch[period:], stretch[:-period]) for period in periods)


def without_overlap(positions: Int64, length: int) -> Int64:
    """From the first on, every occurrence that begins where the one kept before has ended."""
    if (np.diff(positions) >= length).all():
        return positions
    following = np.searchsorted(positions, positions + length).tolist()
    kept, at = [], 0
    while at < len(positions):
        kept.append(at)
        at = following[at]
    return positions[kept]


def maximal(codes: Int64, stretches: list[tuple[int, Int64]]) -> list[tuple[int, Int64]]:
    """The stretches with codes added behind and in front while all occurrences agree and stay apart.

    Those that grow into one and the same are one; what grows into a repetition of a shorter one is left out.
    """
    grown: dict[tuple[int, int], list[tuple[int, Int64]]] = {}
    for length, positions in sorted(stretches, key=lambda each: -each[0]):
        # Parts of one stretch occur at the same distances.
        alike = grown.setdefault((len(positions), hash(np.diff(positions).tobytes())), [])
        first = positions[0]
        if any(other[0] <= first and first + length <= other[0] + reach for reach, other in alike):
            continue
        room = int(np.diff(positions).min(initial=len(codes))) - length
        behind = _agreement(codes, positions + length, 1, room)
        front = _agreement(codes, positions - 1, -1, room - behind)
        begin, reach = int(first) - front, length + behind + front
        if not is_repetition(codes[begin : begin + reach]):
            alike.append((reach, positions - front))
    return [stretch for alike in grown.values() for stretch in alike]


def _agreement(codes: Int64, at: Int64, step: int, most: int) -> int:
    """How many codes, from these places on and one way, are the same at all of them; at most `most`."""
    most = min(most, len(codes) - int(at[-1]) if step > 0 else int(at[0]) + 1)
    count, block = 0, 1
    while count < most:
        block = min(2 * block, most - count, 256)
        ahead = step * np.arange(count, count + block)
        wanted = codes[at[0] + ahead]
        same = (codes[at[:, None] + ahead] == wanted).all(axis=0) & (wanted >= 0)
        if not same.all():
            return count + int(np.argmin(same))
        count += block
    return count
