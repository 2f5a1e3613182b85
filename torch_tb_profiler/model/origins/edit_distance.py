"""All ways to align two sequences with the fewest edits, and which elements are the same in every one of them.

    capture   rms_norm  mm  mm  add         3 edits: one kernel lost, one renamed, one more
    replay    rms_norm  mm      mul  copy

An edit removes, adds or replaces an element (Levenshtein, 1966). Alignments with few edits stay near the diagonal,
so only a band around it is computed; it is widened until no alignment that counts can leave it (Ukkonen, 1985).
Whoever leaves the band has to come back: each diagonal beyond the corners of the table costs two edits.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.model.trace import Bool, Int32

REORDER_SLACK = 2
"""How many edits more than the fewest an alignment may have if the order isn't the same: two neighbors that swap
places cost two."""

DOUBT_SLACK = 1
"""If elements that the capture has are left over, some may be renamed: then an element counts as found if every
alignment with at most so many edits more than the fewest finds it."""

FIRST_BAND = 16
"""How many diagonals beyond the corners the first attempt looks, at least."""

_OUTSIDE = 2**29
"""Number of edits of cells outside of the band: more than any alignment has, and sums of two still fit int32."""

_NO_LABEL, _NO_LABEL_EITHER = -(2**31), -(2**31) + 1


class Alignments(msgspec.Struct, frozen=True):
    """The alignments of k elements with the fewest edits.

    edits      the fewest
    positions  for each element the places of equal elements that it may stand for
    certain    bool[k]  whether each element stands for an equal one in all of these alignments
    """

    edits: int
    positions: list[npt.NDArray[np.int64]]
    certain: Bool


def band_cells(replay: int, capture: int, max_edits: int) -> int:
    """Return the most cells in both tables of `align_sequences` for two lengths."""
    band = _band_of(max_edits, replay, capture)
    return 2 * (replay + 1) * min(2 * band + abs(capture - replay) + 1, capture + 1)


def align_sequences(replay: Int32, capture: Int32, max_edits: int) -> Alignments | None:
    """Return how elements of a replay may stand for those of a capture; None if more than `max_edits` differ."""
    count, launches = len(replay), len(capture)
    least, widest = _count_min_edits(replay, capture), _band_of(max_edits, count, launches)
    if least > max_edits:
        return None
    band = min(max(FIRST_BAND, _band_of(least, count, launches)), widest)
    while True:
        before = _edit_table(replay, capture, band)
        edits = int(before[count, launches - count - _lowest(replay, capture, band)])
        if edits <= max_edits and _band_of(edits, count, launches) <= band:
            return _collect(replay, capture, band, before, edits)
        if band >= widest:
            return None
        band = min(4 * band, widest)


def _count_min_edits(replay: Int32, capture: Int32) -> int:
    """Return how many edits two sequences need at least, whatever their order."""
    codes, both = np.unique(np.concatenate([replay, capture]), return_inverse=True)
    counts = (np.bincount(each, minlength=len(codes)) for each in np.split(both.reshape(-1), [len(replay)]))
    return max(len(replay), len(capture)) - int(np.minimum(*counts).sum())


def _band_of(edits: int, count: int, launches: int) -> int:
    """Return how many diagonals beyond the corners alignments that count may need, if the fewest are `edits`."""
    return max(0, edits + REORDER_SLACK - abs(launches - count)) // 2


def _lowest(replay: Int32, capture: Int32, band: int) -> int:
    """Return the diagonal (place in the capture - place in the replay) at which the band begins."""
    return min(0, len(capture) - len(replay)) - band


def _width(replay: Int32, capture: Int32, band: int) -> int:
    return 2 * band + abs(len(capture) - len(replay)) + 1


def _edit_table(replay: Int32, capture: Int32, band: int) -> npt.NDArray[np.int32]:
    """Return the fewest edits between every two prefixes, int32[k + 1, width].

    Row i has the first i elements of the replay, column d the first i + lowest + d of the capture.
    """
    count, lowest, width = len(replay), _lowest(replay, capture, band), _width(replay, capture, band)
    differs = _differs(replay, capture, band)
    place = np.arange(width, dtype=np.int32)
    # Cells hold the edits less the column, so that adding an element of the capture costs nothing along a row.
    table = np.full((count + 1, width), _OUTSIDE, np.int32)
    table[0, (lowest + place >= 0) & (lowest + place <= len(capture))] = lowest
    best, shifted = np.empty(width, np.int32), np.empty(width - 1, np.int32)
    for i in range(1, count + 1):
        above = table[i - 1]
        np.add(above, differs[i - 1], out=best)
        np.add(above[1:], 2, out=shifted)
        np.minimum(best[:-1], shifted, out=best[:-1])
        low, high = max(0, -lowest - i), min(width, len(capture) - lowest - i + 1)
        np.minimum.accumulate(best[low:high], out=table[i, low:high])
    table += place
    return table


def _differs(replay: Int32, capture: Int32, band: int) -> npt.NDArray[np.int32]:
    """Return 1 where an element of the replay isn't that of the capture on the same diagonal, int32[k, width]."""
    lowest, width = _lowest(replay, capture, band), _width(replay, capture, band)
    before, after = -lowest, max(0, len(replay) + lowest + width - len(capture))
    padded = np.concatenate([np.full(before, _NO_LABEL), capture, np.full(after, _NO_LABEL)]).astype(np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)[: len(replay)]
    differs: npt.NDArray[np.int32] = (windows != replay[:, None]).astype(np.int32)
    return differs


def _collect(replay: Int32, capture: Int32, band: int, before: npt.NDArray[np.int32], edits: int) -> Alignments:
    """Return the alignments from the edits before each pair of places and after it."""
    lowest = _lowest(replay, capture, band)
    after = _edit_table(replay[::-1].copy(), capture[::-1].copy(), band)[::-1, ::-1]
    differs = _differs(replay, capture, band)
    paired = before[:-1] + after[1:] + differs
    added = before[:-1, 1:] + after[1:, :-1] + 1
    unpaired = np.where(differs == 1, paired, _OUTSIDE).min(axis=1, initial=_OUTSIDE)
    matched = len(replay) - (edits - max(0, len(capture) - len(replay)))
    is_left_over = bool(np.isin(replay, capture).sum() > matched)
    slack, doubt = (REORDER_SLACK, DOUBT_SLACK) if is_left_over else (0, 0)
    certain = np.minimum(unpaired, added.min(axis=1, initial=_OUTSIDE)) > edits + doubt
    element, diagonal = np.nonzero((differs == 0) & (paired <= edits + slack))
    places = (element + lowest + diagonal).astype(np.int64)
    bounds = np.searchsorted(element, np.arange(1, len(replay)))
    return Alignments(edits, np.split(places, bounds) if len(replay) else [], certain)
