"""Dumps of hung jobs with a planted fault: the verdict is the fault, or unknown, and never a victim."""

from __future__ import annotations

import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.flight_recorder.read import read_dump
from torch_tb_profiler.model.flight_recorder import JobDumps, RankFile
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.hangs.build import build
from torch_tb_profiler.views.hangs.payload import HangVerdictPayload

FORMS = ("raw", "pickle", "json")

FIELDS = (
    "verdict", "culprit_ranks", "group", "group_desc", "waiting_ranks", "unseen_waiting_ranks",
    "directly_waiting_ranks",
)  # fmt: skip
WAIT_FIELDS = ("group", "collective_seq_id", "p2p_seq_id", "profiling_name")

HOSTILE = (b"\x80\x02cos\nsystem\n.", b"\x80\x02}r\xff\xff\xff\x7f.", b"\x80\x02}T\xff\xff\xff\xff.")
"""A class, a memo bomb, a negative length."""


def cases(corpus: Path) -> list[tuple[Path, str]]:
    folders = sorted(path.parent for path in (corpus / "hangs").glob("*/expected.json"))
    if not folders:
        pytest.skip("there are no dumps of hung jobs")
    return [(folder, form) for folder in folders for form in FORMS if (folder / form).is_dir()]


def truth(case: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((case / "expected.json").read_text("utf-8"))
    return expected


def contents(case: Path, form: str) -> dict[int, bytes]:
    return {int(re.findall(r"\d+", path.name)[-1]): path.read_bytes() for path in sorted((case / form).iterdir())}


def judge(case: Path, dumps: dict[int, bytes]) -> HangVerdictPayload:
    written = truth(case)["dumped_at_ns"]
    files = []
    for rank, data in dumps.items():
        try:
            dump, problem = read_dump(io.BytesIO(data), rank), None
        except TraceError as error:
            dump, problem = None, error.message
        files.append(RankFile(rank, str(rank), dump, problem, written.get(str(rank))))
    return build(JobDumps(tuple(files)), NoParams()).verdict


def test_every_planted_fault_is_found(corpus: Path) -> None:
    wrong = []
    for case, form in cases(corpus):
        expected, found = truth(case), judge(case, contents(case, form))
        if found.verdict == "unknown" and form == "raw":
            continue
        wrong += [
            (case.name, form, name, getattr(found, name), expected[name])
            for name in FIELDS
            if getattr(found, name) != expected[name]
        ]
        waits = [expected, *expected["alternatives"]]
        if not any(all(getattr(found, name) == wait[name] for name in WAIT_FIELDS) for wait in waits):
            wrong.append((case.name, form, "wait", found, waits))
        if form != "json" and found.line not in [wait["line"] for wait in waits]:
            wrong.append((case.name, form, "line", found.line, expected["line"]))
    assert not wrong


def test_the_order_of_the_files_changes_no_verdict(corpus: Path) -> None:
    shuffle = random.Random(7)
    for case, form in cases(corpus):
        dumps = contents(case, form)
        expected = judge(case, dumps)
        order = list(dumps)
        for _ in range(4):
            shuffle.shuffle(order)
            assert judge(case, {rank: dumps[rank] for rank in order}) == expected, (case.name, form)


@pytest.mark.parametrize("how", ["missing", "truncated", *range(len(HOSTILE))])
def test_with_any_one_dump_lost_no_victim_is_accused(corpus: Path, how: str | int) -> None:
    """A rank whose dump is gone may be named as such; nobody else may who is not at fault."""
    wrong = []
    for case, form in cases(corpus):
        expected = truth(case)
        for lost in contents(case, form):
            dumps = contents(case, form)
            data = dumps.pop(lost)
            if how == "truncated":
                dumps[lost] = data[: len(data) // 2]
            elif isinstance(how, int):
                dumps[lost] = HOSTILE[how]
            found = judge(case, dumps)
            allowed = {*expected["culprit_ranks"], lost}
            if not set(found.culprit_ranks) <= allowed or lost in found.waiting_ranks:
                wrong.append((case.name, form, lost, found.verdict, found.culprit_ranks))
    assert not wrong
