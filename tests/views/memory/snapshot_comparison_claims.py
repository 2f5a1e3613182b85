"""Each sentence of Memory on snapshots beside each other: recordings where it holds, and ones where it doesn't."""

from __future__ import annotations

from typing import Any

from tests.support.claims import Claim, ReadSentences
from tests.views.memory.snapshot_claims import of
from tests.views.memory.test_snapshot_compare import EMBEDDING, LARGE, SMALL, A, B, compare, fit, peaking
from tests.views.memory.test_snapshot_failures import BASE, FORWARD, MIB, STEP, draw_segment
from tests.views.memory.test_snapshot_history import read
from tests.views.memory.test_snapshot_ranks import rank, ranks
from torch_tb_profiler.model.snapshots import RecordedSnapshot

WITHOUT_ROOM = peaking((100, STEP), (8 * 8, FORWARD))


def compared(base: RecordedSnapshot, candidate: RecordedSnapshot) -> ReadSentences:
    return lambda: of(compare(base, candidate))


def fitted(base: RecordedSnapshot, candidate: RecordedSnapshot, **params: Any) -> ReadSentences:
    return lambda: of(fit(base, candidate, **params))


def of_ranks(*snapshots: RecordedSnapshot | None) -> ReadSentences:
    """Read the sentences about the snapshots of a job's ranks, None for one that can't be read."""
    return lambda: of(ranks(*snapshots))


ON_TWO = [draw_segment([(50, FORWARD)]), {**draw_segment([(50, FORWARD)], at=BASE + 2**32), "device": 1}]
TWO_GPUS = read({"segments": ON_TWO, "device_traces": [[], []]})

CLAIMS = [
    # ---- two snapshots
    Claim(
        "Both peaks are {size}.",
        r"Both peaks are 64\.0 MiB\.",
        compared(A, A),
        "one is higher",
        compared(A, B),
    ),
    Claim(
        "The peak is {difference} {direction} than in the base ({base}){holder}.",
        r"The peak is 117 MiB higher than in the base \(64\.0 MiB\), 85\.0 MiB of it from models/embedding",
        compared(A, B),
        "it is the base that is higher",
        compared(B, A),
    ),
    Claim(
        "The peak is {difference} {direction} than in the base ({base}){holder}.",
        r"10\.0 MiB higher than in the base \(200 MiB\): 50\.0 MiB more from models/embedding.*, "
        r"40\.0 MiB less from other code\.",
        compared(peaking((200, FORWARD)), peaking((160, FORWARD), (50, EMBEDDING))),
        "other code holds as much as before",
        compared(peaking((200, FORWARD)), peaking((200, FORWARD), (50, EMBEDDING))),
    ),
    Claim(
        "No batch is likely to fit in {room}: {fixed} don't depend on it, and the peak grows by {growth}.",
        r"No batch is likely to fit in 107 MiB: 100 MiB don't depend on it, and the peak grows by 8\.00 MiB per",
        fitted(SMALL, LARGE, batch=8, other_batch=4, device_bytes=107 * MIB),
        "there is room for a batch of one",
        fitted(SMALL, LARGE, batch=8, other_batch=4, device_bytes=108 * MIB),
    ),
    Claim(
        "The largest batch that fits in {room} is likely {batches}: the peak grows by {growth}.",
        r"The largest batch that fits in 600 MiB is likely 29 to 62: the peak grows by 8\.00 MiB per item\.",
        fitted(SMALL, LARGE, batch=8, other_batch=4),
        "the room isn't recorded",
        fitted(SMALL, WITHOUT_ROOM, batch=8, other_batch=4),
    ),
    Claim(
        "The peak grows by {growth} of the batch.",
        r"The peak grows by 8\.00 MiB per item of the batch\.",
        fitted(SMALL, WITHOUT_ROOM, batch=8, other_batch=4),
        "both batches have one peak",
        fitted(SMALL, SMALL, batch=8, other_batch=4),
    ),
    Claim(
        "Can't tell what will fit: {reason}.",
        r"Can't tell what will fit: ",
        fitted(SMALL, SMALL, batch=8, other_batch=4),
        "the larger batch has a higher peak",
        fitted(SMALL, LARGE, batch=8, other_batch=4),
    ),
    # ---- the ranks of a job
    Claim(
        "{rank} differs most{of}: its peak of {peak} is {difference} {direction} {others}{site}.",
        r"Rank 2 differs most: its peak of 161 MiB is 21\.0 MiB above the median of the others; 21\.0 MiB of the ",
        of_ranks(rank(), rank(), rank((21, EMBEDDING)), rank()),
        "it holds 1 MiB more, not 21",
        of_ranks(rank(), rank(), rank((1, EMBEDDING)), rank()),
    ),
    Claim(
        "{rank} differs most{of}: its peak of {peak} is {difference} {direction} {others}{site}.",
        r"is 10\.0 MiB above the median of the others; .*: embedding holds 50\.0 MiB more, other code less\.",
        of_ranks(rank(), rank(), peaking((60, STEP), (40, FORWARD), (50, EMBEDDING))),
        "the optimizer holds as much as on other ranks",
        of_ranks(rank(), rank(), rank((50, EMBEDDING))),
    ),
    Claim(
        "{rank} differs most{of}: its peak of {peak} is {difference} {direction} {others}{site}.",
        r"Rank 1 differs most: its peak of 161 MiB is 21\.0 MiB above that of rank 0; 21\.0 MiB of the difference",
        of_ranks(rank(), rank((21, EMBEDDING))),
        "there are three ranks",
        of_ranks(rank(), rank((21, EMBEDDING)), rank()),
    ),
    Claim(
        "{ranks} peak within {share} of each other: {low} to {high}.",
        r"All 3 ranks peak within 1% of each other: 140 MiB to 141 MiB\.",
        of_ranks(rank(), rank((1, EMBEDDING)), rank()),
        "one holds 2 MiB more",
        of_ranks(rank(), rank((2, EMBEDDING)), rank()),
    ),
    Claim(
        "{ranks} peak within {share} of each other: {low} to {high}.",
        r"All 4 ranks peak within 1\.8% of each other: 991 MiB to 1,009 MiB\.",
        of_ranks(*(peaking((size, FORWARD)) for size in (1000, 1009, 991, 1000))),
        "the least is as near to the most as to the median",
        of_ranks(*(peaking((size, FORWARD)) for size in (1000, 1009, 1000, 1000))),
    ),
    Claim(
        "{ranks} peak within {share} of each other: {low} to {high}.",
        r"All 4 GPUs peak within 1% of each other: 50\.0 MiB to 50\.0 MiB\.",
        of_ranks(TWO_GPUS, TWO_GPUS),
        "each rank has one GPU",
        of_ranks(*[peaking((50, FORWARD))] * 4),
    ),
    Claim(
        "{ranks} ran out of memory.",
        r"Rank 1 and rank 2 ran out of memory\.",
        of_ranks(rank(), rank(oom=5), rank(oom=5)),
        "one of them didn't",
        of_ranks(rank(), rank(oom=5), rank()),
    ),
    Claim(
        "{rank} is the only one that was read; its peak is {peak}.",
        r"Rank 0 is the only one that was read; its peak is 140 MiB\.",
        of_ranks(rank(), None),
        "two were",
        of_ranks(rank(), rank(), None),
    ),
    Claim(
        "Only one snapshot was found, with a peak of {peak}.",
        r"Only one snapshot was found, with a peak of 140 MiB\.",
        of_ranks(rank()),
        "another one can't be read",
        of_ranks(rank(), None),
    ),
    Claim(
        "No snapshot has been read yet.",
        r"No snapshot has been read yet\.",
        of_ranks(None),
        "one was",
        of_ranks(rank(), None),
    ),
    Claim(
        "None of the recordings is a memory snapshot.",
        r"None of the recordings is a memory snapshot\.",
        of_ranks(),
        "one is, and can't be read",
        of_ranks(None),
    ),
]

NO_CLAIMS: dict[str, str] = {}
"""Templates that say nothing that a recording could make false, with the reason."""
