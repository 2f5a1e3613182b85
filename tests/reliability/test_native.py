"""The native reader under the address and undefined-behavior sanitizers: it stays within its bytes."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.corpus import real_traces
from tests.ingest.test_mutations import BYTES, FIELDS, KINETO, LAYOUTS, mangle
from tests.support.sanitizers import build_fuzzer
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto import read
from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.kineto.decode import BlockDecoder
from torch_tb_profiler.ingest.runtime import ignore_progress
from torch_tb_profiler.model.health import HealthLog

INPUTS, LONG_INPUTS = 5_000, 1_000_000


MUTANTS, LONG_MUTANTS = 60, 3_000
"""Damaged traces per layout."""

MOST_BLOCKS = 4
"""Of a real trace, unless the run is long."""


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fuzzer("fuzz.c", tmp_path_factory.mktemp("fuzzer"))


@pytest.mark.slow
def test_damaged_blocks_stay_within_their_bytes(fuzzer: Path, tmp_path: Path, long: bool) -> None:
    """`--long`: a million of them."""
    events = json.loads(KINETO)["traceEvents"]
    events = events[:12] + events[-30:]
    for name, text in (("compact", json.dumps(events)), ("spread", json.dumps(events, indent=1))):
        (tmp_path / name).write_text(text)
    inputs = LONG_INPUTS if long else INPUTS
    command = [str(fuzzer), str(inputs), "1", str(tmp_path / "compact"), str(tmp_path / "spread")]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr[-3000:]
    read = int(done.stdout.split()[-4])
    assert inputs // 20 < read < inputs  # neither all refused nor all fine: both sides were under test


class _Blocks(BlockDecoder):
    """Writes down the blocks that a decoder would get."""

    def __init__(self, most: int) -> None:
        self._left = most
        self.blocks: list[bytes] = []

    def add(self, block: bytes | memoryview) -> int:
        if not self._left:
            raise _Enough
        self._left -= 1
        self.blocks.append(bytes(block))
        return 0

    def add_objects(self, objects: object) -> int:
        return 0

    @property
    def events(self) -> int:
        return 0


class _Enough(Exception):
    pass


def blocks_of(content: bytes, most: int) -> list[bytes]:
    """Return the blocks that a file is cut into, whatever they hold."""
    recorder = _Blocks(most)
    try:
        read._read_events(
            BytesIO(content), recorder, EventColumns(), HealthLog(), len(content), ignore_progress, 0
        )
    except (_Enough, TraceError):
        pass
    return recorder.blocks


def have_read(fuzzer: Path, blocks: Iterable[bytes]) -> tuple[int, int]:
    """Return (blocks, blocks that were read whole); fails if a sanitizer has seen anything."""
    with subprocess.Popen([fuzzer, "-"], stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        try:
            for block in blocks:
                process.stdin.write(len(block).to_bytes(8, sys.byteorder) + block)
        except BrokenPipeError:
            pass  # it has ended, and says why
        out, err = process.communicate()
    assert process.returncode == 0, err.decode(errors="replace")[-3000:]
    inputs, *_, read_ = (int(word) for word in out.split() if word.isdigit())
    return inputs, read_


@pytest.mark.slow
def test_damaged_traces_stay_within_their_bytes(fuzzer: Path, long: bool) -> None:
    def mutants() -> Iterator[bytes]:
        for layout, content in LAYOUTS.items():
            chance = random.Random(layout)
            for _ in range(LONG_MUTANTS if long else MUTANTS):
                complete = gzip.decompress(content) if layout == "gzip" else content
                yield from blocks_of(mangle(complete, BYTES + FIELDS, chance), MOST_BLOCKS)

    inputs, complete = have_read(fuzzer, mutants())
    assert inputs // 20 < complete < inputs


@pytest.mark.slow
def test_real_traces_stay_within_their_bytes(fuzzer: Path, corpus: Path, long: bool) -> None:
    """`--long`: all of each, not its first blocks."""

    def blocks() -> Iterator[bytes]:
        for path in real_traces.files(corpus):
            yield from blocks_of(path.read_bytes(), -1 if long else MOST_BLOCKS)

    inputs, complete = have_read(fuzzer, blocks())
    assert 0.9 * inputs < complete
