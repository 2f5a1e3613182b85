"""Repeated substrings of a list of codes: which stretches of codes occur more than once.

    codes   a b c a b c d      a, b, c, d are numbered from 0; a negative code belongs to no stretch
    rank 2  0 1 2 0 1 3 -      the stretch of two codes that begins here
    rank 4  0 1 ...            composed of two ranks of two: equal numbers, equal stretches

Stretches get longer by doubling, as in the construction of suffix arrays (Karp, Miller and Rosenberg, 1972), but
only where they occur often enough: a longer stretch can't occur more often than its parts.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.shared.grouping import dense_codes, stable_order
from torch_tb_profiler.model.trace import Int64

SEARCHED_LENGTHS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)
"""Lengths that are searched; those between are found by extending repeats (`extend_repeats`)."""

MAX_PER_LENGTH = 64
"""Repeats of each length that are returned: those with the most time."""


def find_repeats(codes: Int64, before: Int64, min_count: int) -> list[tuple[int, Int64]]:
    """Return (length, positions) of stretches that occur at least `min_count` times without overlap, in no order.

    before  int64[n + 1]: the total weight of the codes before each position

    None of them is a repetition of a shorter stretch.
    """
    coded = np.flatnonzero(codes >= 0)
    ranks = {1: _rank_frequent(codes[coded], coded, len(codes), min_count)}
    repeats = []
    for length in SEARCHED_LENGTHS:
        if length >= len(codes):
            break
        rank, composed = None, 0
        for power in sorted(_rank_powers_of_two(ranks, length, min_count), reverse=True):
            while composed + power <= length:
                rank = ranks[power] if rank is None else _compose(rank, ranks[power], composed, min_count)
                composed += power
        assert rank is not None  # 1 is a power
        repeats += _find_heaviest(codes, rank, before, length, min_count)
    return repeats


def _rank_powers_of_two(ranks: dict[int, Int64], max_length: int, min_count: int) -> list[int]:
    """Return the powers of two up to `max_length`, after adding their ranks to `ranks`."""
    power = 1
    while power * 2 <= max_length:
        if power * 2 not in ranks:
            ranks[power * 2] = _compose(ranks[power], ranks[power], power, min_count)
        power *= 2
    return [each for each in ranks if each <= max_length]


def _compose(left: Int64, right: Int64, shift: int, min_count: int) -> Int64:
    """Return the ranks of stretches that begin as ranked in `left` and, `shift` later, go on as in `right`."""
    position = np.flatnonzero((left[: len(left) - shift] >= 0) & (right[shift:] >= 0))
    keys = left[position] * (int(right.max(initial=0)) + 1) + right[position + shift]
    return _rank_frequent(keys, position, len(left), min_count)


def _rank_frequent(keys: Int64, position: Int64, count: int, min_count: int) -> Int64:
    """Number the keys at some of `count` positions from 0; -1 elsewhere and for keys with fewer occurrences."""
    ranks = np.full(count, -1, np.int64)
    number, numbers = dense_codes(keys)
    frequent = np.bincount(number, minlength=numbers) >= min_count
    ranks[position] = np.where(frequent, np.cumsum(frequent) - 1, -1)[number]
    return ranks


def _find_heaviest(
    codes: Int64, rank: Int64, before: Int64, length: int, min_count: int
) -> list[tuple[int, Int64]]:
    """Return the ranked stretches of one length with most weight that are no repetitions."""
    position = np.flatnonzero(rank >= 0)
    if len(position) == 0:
        return []
    ids = rank[position]
    weight = np.bincount(ids, (before[position + length] - before[position]).astype(np.float64))
    best = np.argsort(-weight, kind="stable")[:MAX_PER_LENGTH]
    place_of_id = np.full(len(weight), -1, np.int32)
    place_of_id[best] = np.arange(len(best))
    places = place_of_id[ids]
    position, places = position[places >= 0], places[places >= 0]
    order = stable_order(places)
    bounds = np.append(0, np.cumsum(np.bincount(places)))
    heaviest = []
    for low, high in zip(bounds[:-1], bounds[1:], strict=True):
        positions = position[order[low:high]]
        if is_repetition(codes[positions[0] : positions[0] + length]):
            continue
        disjoint = drop_overlaps(positions, length)
        if len(disjoint) >= min_count:
            heaviest.append((length, disjoint))
    return heaviest


def is_repetition(stretch: Int64) -> bool:
    """Return whether repeating a shorter stretch gives this one."""
    length = len(stretch)
    periods = (period for period in range(1, length // 2 + 1) if length % period == 0)
    return any(np.array_equal(stretch[period:], stretch[:-period]) for period in periods)


def drop_overlaps(positions: Int64, length: int) -> Int64:
    """Return the positions, from the first on, without those that overlap the previous one returned."""
    if (np.diff(positions) >= length).all():
        return positions
    following = np.searchsorted(positions, positions + length).tolist()
    chosen, index = [], 0
    while index < len(positions):
        chosen.append(index)
        index = following[index]
    return positions[chosen]


def extend_repeats(codes: Int64, repeats: list[tuple[int, Int64]]) -> list[tuple[int, Int64]]:
    """Extend repeats at both ends while all occurrences agree and don't overlap.

    Repeats that grow into the same one are returned once; those that grow into a repetition are left out.
    """
    extended: dict[tuple[int, int], list[tuple[int, Int64]]] = {}
    for length, positions in sorted(repeats, key=lambda each: -each[0]):
        # Parts of the same repeat occur at the same distances.
        same_distances = extended.setdefault((len(positions), hash(np.diff(positions).tobytes())), [])
        first = positions[0]
        if any(other[0] <= first and first + length <= other[0] + reach for reach, other in same_distances):
            continue
        free = int(np.diff(positions).min(initial=len(codes))) - length
        after = _measure_common_length(codes, positions + length, 1, free)
        ahead = _measure_common_length(codes, positions - 1, -1, free - after)
        begin, reach = int(first) - ahead, length + after + ahead
        if not is_repetition(codes[begin : begin + reach]):
            same_distances.append((reach, positions - ahead))
    return [repeat for same_distances in extended.values() for repeat in same_distances]


def _measure_common_length(codes: Int64, positions: Int64, step: int, max_length: int) -> int:
    """Return how many codes from these positions on, in the direction of `step`, are the same at all of them."""
    max_length = min(max_length, len(codes) - int(positions[-1]) if step > 0 else int(positions[0]) + 1)
    count, block = 0, 1
    while count < max_length:
        block = min(2 * block, max_length - count, 256)
        offsets = step * np.arange(count, count + block)
        wanted = codes[positions[0] + offsets]
        same = (codes[positions[:, None] + offsets] == wanted).all(axis=0) & (wanted >= 0)
        if not same.all():
            return count + int(np.argmin(same))
        count += block
    return count
