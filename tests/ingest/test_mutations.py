"""Thousands of damaged traces: none crashes the reader or the overview, and damage stays where it was done."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.producers import ascend, gaudi
from tests.support.producers.composer import EPOCH, Batch, content, counter, cycle, merge_ranks
from tests.support.traces import read_bytes
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.jobs import analyze

pytestmark = pytest.mark.slow

ROUNDS, LONG_ROUNDS = 100, 1000
"""Mutated traces per case; nineteen cases."""

SAMPLE = next((Path(__file__).parents[2] / "samples" / "ddp").glob("rank0*.gz"))

Mutation = Callable[[bytearray, random.Random], None]


def kineto() -> bytes:
    """Return the first events of a recorded file, as Kineto wrote them, and device work launched by them."""
    text = gzip.decompress(SAMPLE.read_bytes()).decode()
    cut = text.index("\n  },\n", 20_000) + len("\n  }")
    return (text[:cut] + ",\n" + DEVICE_WORK + '\n  ], "traceName": "x" }').encode()


DEVICE_WORK = """  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
    "ts": 4383549797800.125, "dur": 7.500, "args": { "External id": 9, "cbid": 211, "correlation": 9 }
  },
  {
    "ph": "s", "id": 9, "pid": 1, "tid": 1, "ts": 4383549797800.125, "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "void gemm<float, 4>(int*)", "pid": 0, "tid": 7,
    "ts": 4383549797810.000, "dur": 21.250, "args": {
      "device": 0, "stream": 7, "correlation": 9, "grid": [4, 1, 1], "block": [128, 1, 1],
      "blocks per SM": 0.25, "est. achieved occupancy %": 12 }
  },
  {
    "ph": "f", "id": 9, "pid": 0, "tid": 7, "ts": 4383549797810.000, "cat": "ac2g", "name": "ac2g", "bp": "e"
  }"""


def compact(text: bytes) -> bytes:
    return json.dumps(json.loads(text), separators=(",", ":")).encode()


def bare_list(text: bytes) -> bytes:
    return json.dumps(json.loads(text)["traceEvents"]).encode()


def composer() -> bytes:
    """Return two ranks of a trainer in one file, and samples of their machine."""
    ranks = [cycle([Batch(), Batch()], rank=rank, sync=EPOCH + 5 * rank) for rank in (0, 1)]
    samples = [
        counter(name, EPOCH + 50 * position, {field: 20_000.0 * (position + 1)})
        for name, field in (("memory/virtual", "used_gb"), ("disk/sda/read_bytes", "field_name"))
        for position in range(3)
    ]
    return content([*merge_ranks(*ranks), *samples], closed=False)


KINETO = kineto()
LAYOUTS = {
    "kineto": KINETO,
    "one line": compact(KINETO),
    "bare list": bare_list(KINETO),
    "composer": composer(),
    "gaudi": gaudi.content(plugin=True),
    "ascend": json.dumps(ascend.events()).encode(),
    "gzip": gzip.compress(KINETO, mtime=0),
}
CORPUS = Path(__file__).parents[1] / "reliability" / "corpus"
SAMPLES = ("nvidia_smi_odd_lines", "nvidia_smi_monitor", "amd_smi_odd_lines", "dcgm_with_times")


def flip(text: bytearray, chance: random.Random) -> None:
    text[chance.randrange(len(text))] = (
        chance.choice(b'"{}[],:\\\n\0 09aeX-\xff\xc3') if chance.random() < 0.7 else (chance.randrange(256))
    )


def cut_out(text: bytearray, chance: random.Random) -> None:
    position = chance.randrange(len(text))
    del text[position : position + chance.choice((1, 3, 30, 300))]


def repeat(text: bytearray, chance: random.Random) -> None:
    position, to = chance.randrange(len(text)), chance.randrange(len(text))
    text[to:to] = text[position : position + chance.choice((1, 10, 100, 1000))]


def cut_off(text: bytearray, chance: random.Random) -> None:
    del text[chance.randrange(len(text)) :]


EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
FIELD = re.compile(rb'"[^"\n]{1,30}"\s*:\s*("[^"\n]*"|-?[\d.]+|\[[^\]\n]*\])')
ODD = [
    b"null", b"true", b"-1", b"1e400", b"-0.0", b"18446744073709551616", b"-9223372036854775808", b"1e18", b"9.5",
    b'""', b'"\\ud800"', b'"12"', b"[]", b"{}", b"[[1], {}]", b"nan", b"N/A", b"Infinity", b'"X"', b'"B"', b'"E"',
    b'"ProfilerStep#x"', b'"kernel"', b'"python_function"', b'"nn.Module: "', b'"[memory]"',
]  # fmt: skip


def swap_fields(text: bytearray, chance: random.Random) -> None:
    """Swap two values of the document, whatever their kind."""
    fields = [match.span(1) for match in FIELD.finditer(text)]
    if len(fields) > 1:
        (a, b), (c, d) = sorted(chance.sample(fields, 2))
        text[a:d] = text[c:d] + text[b:c] + text[a:b]


def odd_value(text: bytearray, chance: random.Random) -> None:
    fields = [match.span(1) for match in FIELD.finditer(text)]
    if fields:
        start, end = chance.choice(fields)
        text[start:end] = chance.choice(ODD)


BYTES: tuple[Mutation, ...] = (flip, cut_out, repeat, cut_off)
FIELDS: tuple[Mutation, ...] = (swap_fields, odd_value, odd_value)


def mangle(complete: bytes, mutations: Sequence[Mutation], chance: random.Random) -> bytes:
    """Return the bytes after a few mutations, or many."""
    content = bytearray(complete)
    for _ in range(chance.choice((1, 1, 2, 5, 40))):
        if content:
            chance.choice(mutations)(content, chance)
    return bytes(content)


PARTS = ("computation", "overlap", "exposed", "other")


def survives(damaged: bytes) -> Trace | None:
    """Read and examined, or refused with a reason; anything else fails the test."""
    try:
        trace = read_bytes(damaged)
    except TraceError as error:
        assert error.message
        return None
    _, results, _ = analyze(trace)
    for name, payload in results.items():
        for step in json.loads(payload)["steps"] if name.startswith("overview") else ():
            known = [time for time in step["categories"].values() if time is not None]
            if len(known) == 8:
                assert sum(known) == step["duration_ns"]
        for step in json.loads(payload)["steps"] if name.startswith("distributed") else ():
            assert sum(step[part] for part in PARTS) == step["duration"]
    return trace


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mutations", [BYTES, FIELDS, BYTES + FIELDS], ids=["bytes", "fields", "both"])
def test_no_damage_crashes(layout: str, mutations: tuple[Mutation, ...], long: bool) -> None:
    if layout == "gzip" and mutations is not BYTES:
        pytest.skip("fields are not visible in packed bytes")
    chance = random.Random(f"{layout}{len(mutations)}")
    for _ in range(LONG_ROUNDS if long else ROUNDS):
        survives(mangle(LAYOUTS[layout], mutations, chance))


@pytest.mark.parametrize("name", SAMPLES)
def test_no_damage_to_samples_crashes(name: str, long: bool) -> None:
    chance = random.Random(name)
    for _ in range(LONG_ROUNDS if long else ROUNDS):
        survives(mangle((CORPUS / name).read_bytes(), BYTES, chance))


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "gzip"])
def test_a_flipped_byte_costs_at_most_one_event_and_is_noted(layout: str, long: bool) -> None:
    complete = survives(LAYOUTS[layout])
    assert complete is not None
    chance = random.Random(layout)
    for _ in range(LONG_ROUNDS if long else ROUNDS):
        text = bytearray(LAYOUTS[layout])
        flip(text, chance)
        trace = survives(bytes(text))
        if trace is None:  # refused: nothing says any more where the events are
            assert EVENTS.search(LAYOUTS[layout]) and not EVENTS.search(text)
            continue
        assert len(complete) - len(trace) in (0, 1)
        assert len(trace) == len(complete) or trace.health != complete.health
