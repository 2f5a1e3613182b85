"""A compiled training that our handler records: its kernels lead to the lines of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import torch_tb_profiler

PROGRAM = """
import sys, torch, torch_tb_profiler
import torch._inductor.config as config
config.cpp.enable_kernel_profile = True
on_trace_ready = torch_tb_profiler.handler(sys.argv[1], "rank0", summary=False)
def model(x, w):
    y = torch.nn.functional.silu(x @ w)
    return (y * y).sum()
step = torch.compile(model)
x, w = torch.randn(8, 16), torch.randn(16, 16, requires_grad=True)
step(x, w).backward()
with torch.profiler.profile(on_trace_ready=on_trace_ready, record_shapes=True):
    step(x, w).backward()
"""


@pytest.mark.torch
@pytest.mark.slow
def test_compiled_kernels_lead_to_the_lines_of_the_program_with_and_without_the_cache(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.lstrip())
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    found = []
    for run in ("cold", "warm"):
        subprocess.run([sys.executable, program, tmp_path / "log" / run], env=environment, check=True, timeout=300)
        assert len(list((tmp_path / "log" / run).glob("rank0.*.compiled.log"))) == 1
        with torch_tb_profiler.open(str(tmp_path / "log")) as log:
            rows = log[run].columns().origins.to_pylist()
        found.append([(row["name"], row["lines"], row["backward"], row["nodes"]) for row in rows])
        assert {row["how"] for row in rows} == {"compile record"}
        lines = {line for row in rows for line in row["lines"]}
        assert lines == {f"{program}:6", f"{program}:7"}
        assert {row["backward"] for row in rows} == {True, False}
    assert found[0] == found[1]
