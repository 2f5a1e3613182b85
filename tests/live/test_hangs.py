"""A job that hangs here and now, by the example that does so on purpose: the rank at fault is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import torch_tb_profiler
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.hangs.payload import HangsPayload

pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "hang.py"
WORLD, CULPRIT = 3, 1
FAULTY_STEP, CALLS_PER_STEP = 3, 5
"""As in the script: four gradients and a barrier per step."""


def hang(folder: Path, fault: str) -> HangsPayload:
    arguments = [f"--logdir={folder}", f"--world={WORLD}", f"--culprit={CULPRIT}", f"--fault={fault}"]
    job = subprocess.run([sys.executable, str(SCRIPT), *arguments, "--patience=2"], capture_output=True, text=True)
    assert job.returncode == 0, job.stderr
    with torch_tb_profiler.open(str(folder)) as log:
        return log.run().hangs().data


def line_of(text: str) -> int:
    lines = SCRIPT.read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_the_rank_whose_batch_never_comes_is_named_with_its_line(tmp_path: Path) -> None:
    payload = hang(tmp_path, "data")
    verdict = payload.verdict
    number = FAULTY_STEP * CALLS_PER_STEP + 1
    assert (verdict.verdict, verdict.culprit_ranks, verdict.waiting_ranks) == ("not_joined", [CULPRIT], [0, 2])
    assert (verdict.profiling_name, verdict.collective_seq_id) == ("all_reduce", number)
    assert plain(payload.headline).startswith(
        f"Rank {CULPRIT} never called all_reduce {number}; ranks 0 and 2 have"
    )
    assert verdict.line == f"{SCRIPT}:{line_of('dist.all_reduce(')}"
    where = payload.stacks[-1]
    assert (where.source, where.ranks, where.culprit) == ("faulthandler", [CULPRIT], True)
    own = next(frame for frame in where.frames if not frame.library)
    assert (own.file, own.line, own.function) == (str(SCRIPT), line_of("batches.get()"), "load_batch")
    assert any(fact.title == "A slow step" and "pending in two dumps" in fact.text for fact in payload.ruled_out)


def test_the_rank_that_leaves_out_a_call_is_named_with_what_it_called_instead(tmp_path: Path) -> None:
    verdict = hang(tmp_path, "skip").verdict
    assert (verdict.verdict, verdict.culprit_ranks, verdict.waiting_ranks) == ("mismatch_op", [CULPRIT], [0, 2])
    assert (verdict.profiling_name, verdict.culprit_profiling_name) == ("all_reduce", "barrier")
    assert verdict.line == f"{SCRIPT}:{line_of('dist.barrier()')}"
