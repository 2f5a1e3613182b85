"""Tensors in mapped memory, which PyTorch reports with totals that are not its allocator's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.memory.events import memory_records
from torch_tb_profiler.model.memory.mappings import with_mappings
from torch_tb_profiler.model.trace import ABSENT

Row = tuple[int, int, int, int]
"""Address, size, total allocated, total reserved: as the profiler has them."""


def totals(*rows: Row) -> tuple[list[int], list[int]]:
    allocated, reserved = with_mappings(*np.array(rows, np.int64).T)
    return allocated.tolist(), reserved.tolist()


def test_what_is_mapped_is_in_use_and_no_cache() -> None:
    rows = [(1, 100, 100, 0), (2, 70, 0, 70), (3, 50, 150, 0), (2, -70, 0, 0), (1, -100, 50, 0)]
    assert totals(*rows) == ([100, 170, 220, 150, 50], [0] * 5)


def test_what_was_mapped_before_the_recording_is_known_by_its_release() -> None:
    rows = [(1, 10, 510, 0), (9, -30, 0, 0), (2, 70, 0, 70), (2, -70, 0, 0)]
    assert totals(*rows)[0] == [540, 510, 580, 510]


def test_before_the_first_event_of_the_allocator_its_total_is_what_it_began_with() -> None:
    assert totals((2, 70, 0, 70), (1, 10, 510, 0))[0] == [570, 580]


def test_mappings_alone_are_added_up() -> None:
    assert totals((2, 70, 0, 70), (3, 5, 0, 5), (2, -70, 0, 0)) == ([70, 75, 5], [0, 0, 0])


def test_the_last_block_of_the_allocator_is_no_mapping() -> None:
    """Its release leaves 0 of both totals, too; so does the one of an address that was mapped before."""
    rows = [(2, 70, 0, 70), (2, -70, 0, 0), (2, 20, 20, 0), (2, -20, 0, 0), (8, 5, 5, 0)]
    assert totals(*rows)[0] == [70, 0, 20, 0, 5]


@pytest.mark.parametrize("rows", [[(1, 100, 100, 0), (1, -100, 0, 0)], [(1, 100, 100, 500), (2, 300, 400, 500)]])
def test_without_mappings_totals_are_as_recorded(rows: list[Row]) -> None:
    assert totals(*rows) == ([row[2] for row in rows], [row[3] for row in rows])


def test_a_total_that_is_missing_stays_unknown_and_the_others_are_right() -> None:
    rows = [(2, 70, 0, 70), (1, 10, ABSENT, 0), (3, 5, 515, 0), (4, 1, ABSENT, ABSENT), (2, -70, 0, 0)]
    assert totals(*rows) == ([570, ABSENT, 585, ABSENT, 515], [0, 0, 0, ABSENT, 0])


def test_mappings_beside_an_allocator_without_totals_are_unknown() -> None:
    rows = [(2, 70, 0, 70), (1, 10, ABSENT, 0), (2, -70, 0, 0)]
    assert totals(*rows)[0] == [ABSENT] * 3


def test_a_release_of_what_is_unknown_after_a_missing_total_is_the_allocators() -> None:
    """It leaves 0 of both totals; a total that is missing does not tell whether the allocator had more before."""
    rows = [(2, 70, 0, 70), (1, 10, ABSENT, 0), (9, -30, 0, 0), (2, -70, 0, 0)]
    assert totals(*rows)[0] == [90, ABSENT, 70, 0]


def test_in_every_sample_each_event_changes_the_total_by_its_size(samples: Path) -> None:
    """Those of data loading have batches of worker processes, which are mapped."""
    recorded = 0
    for path in sorted(samples.glob("*/*.pt.trace.json.gz")):
        with path.open("rb") as stream:
            records = memory_records(read_trace(stream))
        for device in range(len(records.devices)):
            of_device = records.device == device
            assert (np.diff(records.allocated[of_device]) == records.size[of_device][1:]).all()
            recorded += int(of_device.sum())
    assert recorded > 20_000
