"""Compiled code that real PyTorch records: its kernels lead to the lines of the program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torch_tb_profiler
from tests.support.waiting import PATIENCE

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

AHEAD_OF_TIME = """
import sys, zipfile, pathlib, torch
import torch._inductor.config as config
config.trace.provenance_tracking_level = 1
config.cpp.enable_kernel_profile = True
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
    def forward(self, x):
        y = torch.nn.functional.silu(self.up(x))
        return torch.softmax(self.down(y) + 1, -1)
folder = pathlib.Path(sys.argv[1])
x = torch.randn(8, 16)
program = torch.export.export(Model(), (x,))
package = torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))
model = torch._inductor.aoti_load_package(package)
(folder / "log/run").mkdir(parents=True)
with zipfile.ZipFile(package) as content:
    name = next(name for name in content.namelist() if name.endswith("/kernel_information.json"))
    (folder / "log/run/kernel_information.json").write_bytes(content.read(name))
with torch.profiler.profile() as prof:
    for _ in range(3):
        model(x)
prof.export_chrome_trace(str(folder / "log/run/rank0.1.pt.trace.json"))
"""

FEW_COMPILERS = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
    "AOT_INDUCTOR_COMPILE_WRAPPER_OPT_LEVEL": "O0",
}
"""More would be processes that import torch, for two kernels; a try whether the compiler knows the processor's
vectors, and fast code around kernels that run three times, are half of the compiler's work."""


@pytest.mark.torch
@pytest.mark.slow
def test_compiled_kernels_lead_to_the_lines_of_the_program_with_and_without_the_cache(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.lstrip())
    environment = os.environ | FEW_COMPILERS | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    found = []
    for run in ("cold", "warm"):
        subprocess.run(
            [sys.executable, program, tmp_path / "log" / run], env=environment, check=True, timeout=5 * PATIENCE
        )
        assert len(list((tmp_path / "log" / run).glob("rank0.*.compiled.log"))) == 1
        with torch_tb_profiler.open(str(tmp_path / "log")) as log:
            rows = log[run].columns().origins.to_pylist()
        found.append([(row["name"], row["lines"], row["backward"], row["nodes"]) for row in rows])
        assert {row["how"] for row in rows} == {"compile record"}
        lines = {line for row in rows for line in row["lines"]}
        assert lines == {f"{program}:6", f"{program}:7"}
        assert {row["backward"] for row in rows} == {True, False}
    assert found[0] == found[1]


@pytest.mark.torch
@pytest.mark.slow
def test_kernels_of_a_model_compiled_ahead_of_time_lead_to_the_lines_of_the_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(AHEAD_OF_TIME.lstrip())
    command = [sys.executable, str(program), str(tmp_path)]
    subprocess.run(command, env=os.environ | FEW_COMPILERS, check=True, timeout=5 * PATIENCE)
    with torch_tb_profiler.open(str(tmp_path / "log")) as log:
        rows = log["run"].columns().origins.to_pylist()
    rows.sort(key=lambda row: row["start_ns"])
    assert {row["how"] for row in rows} == {"compile record"}
    names = [re.sub(r"^graph_\d+_|_\d+$", "", row["name"]) for row in rows]
    lines = [{int(line.removeprefix(f"{program}:")) for line in row["lines"]} for row in rows]
    products = [10, 11]
    called = [line for name, line in zip(names, lines, strict=True) if name == "aoti_torch_cpu_addmm_out"]
    assert called == [{line} for line in products] * 3  # the same kernel, of two lines
    assert set().union(*lines) == set(products)


UNWANTED = """
import sys, torch, torch_tb_profiler
from torch._logging import trace_structured
on_trace_ready = torch_tb_profiler.handler(sys.argv[1], "rank0", summary=False)
trace_structured("first")  # PyTorch's own handler leaves at the first entry, unless TORCH_TRACE is set
def log(entry, **metadata):
    trace_structured(entry, lambda: metadata, payload_fn=lambda: print(entry, *metadata.values()))
log("chromium_event")
log("artifact", name="before_post_grad_graph")
log("artifact", name="fx_graph_cache_hit")
log("inductor_output_code")
"""


@pytest.mark.torch
@pytest.mark.slow
def test_pytorch_renders_only_the_entries_that_are_kept(tmp_path: Path) -> None:
    def rendered(**variables: str) -> str:
        command = [sys.executable, "-c", UNWANTED, str(tmp_path / "log")]
        done = subprocess.run(
            command,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            text=True,
            timeout=5 * PATIENCE,
            check=True,
        )
        return done.stdout

    assert rendered().splitlines() == ["artifact fx_graph_cache_hit", "inductor_output_code"]
    assert len(rendered(TORCH_TRACE=str(tmp_path / "trace")).splitlines()) == 4
