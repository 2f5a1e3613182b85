"""Which launch of a capture each kernel of a replay stands for.

    capture   rms_norm  mm  mm  add        exact: same names in the same order
    replay    rms_norm  mm      add        a kernel lost: mm is the second or the third launch

If the names differ, all positions in alignments with the fewest edits are kept. What they agree on is known;
nothing is chosen among them. If kernels ran in another order than they were captured, the true positions may need
a few edits more, so these count, too. A kernel that only some of these alignments find has no position: perhaps
it was renamed to a name that was captured elsewhere.

NVIDIA's captures hold no names but those of Triton kernels and copies. They explain a replay only if it has as
many kernels and these names are at their places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.model.origin_records import Capture
from torch_tb_profiler.model.origins.edit_distance import align_sequences, band_cells
from torch_tb_profiler.model.origins.replays import ReplayOrder, kernel_label
from torch_tb_profiler.model.trace import Int32

MIN_EXPLAINED_RATIO = 0.8
"""A capture explains a replay if this share of the replay's kernels is in it, in order."""

MIN_COVERED_RATIO = 0.5
"""... and if the replay has at least this share of the capture: a few kernels are found in any large capture."""

MIN_KERNELS = 16
"""Of a replay with fewer kernels, all must be found. A capture with fewer launches and no name proves nothing."""

MAX_CELLS = 400_000_000
"""Most cells of all tables that one trace may fill: a few seconds."""

MAX_TABLE_CELLS = 40_000_000
"""Most cells of the two tables of one alignment: 160 MB."""

NAMELESS = -1
"""Code of a launch whose kernel isn't named."""

OTHER_COUNT = "the capture has another number of launches than the replay has kernels"
OTHER_KERNELS = "no capture has these kernels in this order"
NO_NAMES = "the capture names too few of its kernels to be sure that it is of this graph"
NO_ORDER = "the graph has several streams and its kernels have no node IDs, so their order isn't known"
TOO_MANY = "the replays differ too much to align all of them"


class Match(msgspec.Struct, frozen=True):
    """Positions in a capture that the kernels of a replay may stand for.

    exact      each kernel has one position, in order
    score      number of kernels that one alignment explains
    positions  for each kernel
    """

    exact: bool
    score: int
    positions: list[npt.NDArray[np.int64]]


class CaptureSequence(msgspec.Struct, frozen=True):
    """Captures with the same kernels in the same order: codes of their labels, and their numbers."""

    codes: Int32
    counts: Counter[int]
    nameless: bool
    forked: bool
    members: list[int]


class Labels:
    """A numbering of kernel labels that replays and captures share."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._of_name: dict[str | None, int] = {None: NAMELESS}

    def code(self, name: str | None) -> int:
        """Return the code of a kernel's label, NAMELESS for None."""
        if name not in self._of_name:
            self._of_name[name] = self._codes.setdefault(kernel_label(name or ""), len(self._codes))
        return self._of_name[name]

    def codes(self, names: Sequence[str | None]) -> Int32:
        return np.fromiter(map(self.code, names), np.int32, len(names))


def distinct_sequences(captures: Sequence[Capture], labels: Labels) -> list[CaptureSequence]:
    """Return the captures grouped by their kernels."""
    found: dict[tuple[bytes, bool], CaptureSequence] = {}
    for number, capture in enumerate(captures):
        codes = labels.codes(capture.kernels)
        key = codes.tobytes(), capture.forked
        if key not in found:
            counts = Counter(codes.tolist())
            found[key] = CaptureSequence(codes, counts, NAMELESS in counts, capture.forked, [])
        found[key].members.append(number)
    return list(found.values())


class Aligner:
    """Aligns replays with the captures of a trace, within a limit of work."""

    def __init__(self, captures: Sequence[CaptureSequence]) -> None:
        self._captures = captures
        self._cells_left = MAX_CELLS

    def matches(
        self, replay: Int32, streams: Int32, order: ReplayOrder
    ) -> tuple[list[tuple[CaptureSequence, Match]], str | None]:
        """Return the captures that explain a replay best, with the positions; if there are none, also the reason.

        replay   int32[k] codes of the labels of its kernels, in order
        streams  int32[k] the stream of each
        order    what this order comes from
        """
        exact = [(each, _exact(len(replay))) for each in self._captures if _is_exact(each, replay, order)]
        if order == ReplayOrder.UNKNOWN:
            exact = [
                (each, _match_by_name(each, replay, streams)) for each in self._captures if _same_bag(each, replay)
            ]
        if exact:
            return exact, None
        found, reasons = [], Counter[str]()
        for capture in self._captures:
            reason, match = self._align(capture, replay, streams, order)
            if match is None:
                reasons[reason] += 1
            else:
                found.append((capture, match))
        if not found:
            return [], min(reasons, key=_REASONS.index, default=None)
        best = max(match.score for _, match in found)
        return [(capture, match) for capture, match in found if match.score == best], None

    def _align(
        self, capture: CaptureSequence, replay: Int32, streams: Int32, order: ReplayOrder
    ) -> tuple[str, Match | None]:
        if capture.nameless:
            return _nameless_reason(capture, replay, order), None
        shared = sum((Counter(replay.tolist()) & capture.counts).values())
        if not _explains(shared, len(replay), len(capture.codes)):
            return OTHER_KERNELS, None
        max_edits = _max_edits(len(replay), len(capture.codes))
        cells = band_cells(len(replay), len(capture.codes), max_edits)
        if cells > min(MAX_TABLE_CELLS, self._cells_left):
            return TOO_MANY, None
        self._cells_left -= cells
        found = align_sequences(replay, capture.codes, max_edits)
        score = len(replay) - (found.edits - max(0, len(capture.codes) - len(replay))) if found else 0
        if found is None or not _explains(score, len(replay), len(capture.codes)):
            return OTHER_KERNELS, None
        positions = found.positions
        if order == ReplayOrder.UNKNOWN:
            positions = _merge_streams(positions, replay, streams)
        none = np.empty(0, np.int64)
        certain = found.certain.tolist()
        return "", Match(
            False, score, [each if sure else none for each, sure in zip(positions, certain, strict=True)]
        )


_REASONS = (TOO_MANY, NO_ORDER, NO_NAMES, OTHER_COUNT, OTHER_KERNELS)
"""If captures fail for different reasons, the first of these is the one to know."""


def _explains(score: int, kernels: int, launches: int) -> bool:
    enough = kernels if kernels < MIN_KERNELS else MIN_EXPLAINED_RATIO * kernels
    return score >= enough and score >= MIN_COVERED_RATIO * launches


def _max_edits(kernels: int, launches: int) -> int:
    """Return the most edits between a replay and a capture that explains it."""
    changed = 0 if kernels < MIN_KERNELS else int((1 - MIN_EXPLAINED_RATIO) * kernels)
    return changed + max(0, launches - kernels)


def _exact(count: int) -> Match:
    return Match(True, count, list(np.arange(count).reshape(-1, 1)))


def _is_exact(capture: CaptureSequence, replay: Int32, order: ReplayOrder) -> bool:
    """Return whether each launch of a capture may be the kernel at its place."""
    if order == ReplayOrder.UNKNOWN or len(capture.codes) != len(replay):
        return False
    if not capture.nameless:
        return bool((capture.codes == replay).all())
    return _nameless_reason(capture, replay, order) == ""


def _nameless_reason(capture: CaptureSequence, replay: Int32, order: ReplayOrder) -> str:
    """Return why a capture without all names doesn't explain a replay, "" if it does."""
    if len(capture.codes) != len(replay):
        return OTHER_COUNT
    if order == ReplayOrder.UNKNOWN or (capture.forked and order != ReplayOrder.NODE_IDS):
        return NO_ORDER
    named = capture.codes != NAMELESS
    if not (capture.codes[named] == replay[named]).all():
        return OTHER_KERNELS
    # A kernel that is named where the capture knows the names is not one of the nameless launches.
    if np.isin(replay[~named], capture.codes[named]).any():
        return OTHER_KERNELS
    return "" if named.any() or len(replay) >= MIN_KERNELS else NO_NAMES


def _same_bag(capture: CaptureSequence, replay: Int32) -> bool:
    return not capture.nameless and Counter(replay.tolist()) == capture.counts


def _match_by_name(capture: CaptureSequence, replay: Int32, streams: Int32) -> Match:
    """Match the n-th kernel of a name with its n-th launch, if all kernels of the name are on one stream."""
    positions: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)] * len(replay)
    for code, places in _places_by_code(capture.codes):
        members = np.flatnonzero(replay == code)
        one_stream = len(np.unique(streams[members])) == 1
        for nth, member in enumerate(members.tolist()):
            positions[member] = places[nth : nth + 1] if one_stream else places
    return Match(False, len(replay), positions)


def _places_by_code(codes: Int32) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    for code in np.unique(codes).tolist():
        yield code, np.flatnonzero(codes == code)


def _merge_streams(
    positions: list[npt.NDArray[np.int64]], replay: Int32, streams: Int32
) -> list[npt.NDArray[np.int64]]:
    """Give all kernels of a name that runs on several streams the positions of all of them."""
    merged = list(positions)
    for code in np.unique(replay).tolist():
        members = np.flatnonzero(replay == code)
        if len(np.unique(streams[members])) > 1:
            union = np.unique(np.concatenate([positions[member] for member in members.tolist()]))
            for member in members.tolist():
                merged[member] = union
    return merged
