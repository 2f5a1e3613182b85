"""A job of two processes that runs here and now, one of them slowed on purpose: the view names it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.waiting import PATIENCE
from torch_tb_profiler.session import open_session

torch: Any = pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SLOW_RANK = 1
AUGMENT_SECONDS = 0.1
STEPS = 12
"""So many that a few in which a busy machine holds a process up don't hide what is planted."""

# Each process runs this file by itself: what a test module imports is not theirs.
JOB = """
import sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

folder, meeting_point = sys.argv[2:4]
rank, slow_rank, seconds, steps = int(sys.argv[1]), int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6])
ready = []
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=2)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
handler = tensorboard_trace_handler(folder, worker_name=f"rank{rank}")
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=2, active=steps, repeat=1),
             on_trace_ready=handler, record_shapes=True) as prof:
    for _ in range(2 + steps):
        loss = model(torch.randn(8, 64)).sum()
        optimizer.zero_grad()
        if rank == slow_rank:
            with record_function("augment"):
                begin = time.perf_counter()
                while time.perf_counter() < begin + seconds:
                    sorted(range(1000), key=hash)
        ready.append(time.perf_counter())
        loss.backward()
        optimizer.step()
        prof.step()
dist.destroy_process_group()
print(*ready[-steps:])
"""


def test_the_slowed_rank_is_named(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    folder, meeting = tmp_path / "log" / "run", tmp_path / "meet"
    processes = [
        subprocess.Popen(
            [sys.executable, *map(str, (script, rank, folder, meeting, SLOW_RANK, AUGMENT_SECONDS, STEPS))],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=5 * PATIENCE)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs

    with open_session(str(tmp_path / "log")) as session:
        answer = session.view("distributed", wait=True)
    assert answer.payload is not None, answer.state
    payload = json.loads(answer.payload)
    verdict = payload["verdict"]
    assert (verdict["kind"], verdict["rank"]) == ("straggler", SLOW_RANK), verdict
    explanation = "".join(phrase["text"] for phrase in payload["explanation"])
    assert f"rank {SLOW_RANK}'s host spends" in explanation and "in augment" in explanation
    first = payload["stragglers"][0]
    assert first["rank"] == SLOW_RANK
    # By the clock that both share: on a busy machine either may be held up beside what is planted.
    fast, slow = (np.array(output.split()[-STEPS:], float) for output in outputs)
    assert first["delay_per_step_ns"] == pytest.approx(np.median(slow - fast) * 1e9, rel=0.3)
    assert payload["mismatch_count"] == 0
    assert [group["ranks"] for group in payload["groups"]] == [[0, 1]]
    for row in payload["overview"]:
        parts = ("computation_ns", "overlap_ns", "exposed_ns", "other_ns")
        assert row["duration_ns"] == sum(row[part] for part in parts)
