"""Modules of models that run here and now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces import read_bytes
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.availability import modules_reason as unavailable
from torch_tb_profiler.views.lightning import build as build_lightning
from torch_tb_profiler.views.modules import build as build_modules

torch: Any = pytest.importorskip("torch")

# What torch and Lightning warn of is not ours to mend.
pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def record(tmp_path: Path, run: Any, **options: Any) -> Trace:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as prof:
        run()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    return read_bytes(path.read_bytes())


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.act = torch.nn.ReLU()

    def forward(self, x: Any) -> Any:
        return x + self.act(self.linear(x))


class Net(torch.nn.Module):
    def __init__(self, again: bool = False) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(64) for _ in range(2)])
        self.head = torch.nn.Linear(64, 8)
        self.again = again

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return self.head(x).mean()


Outline = list[tuple[str, int, "Outline"]]


def outline(rows: Any) -> Outline:
    return [(row.class_name, row.calls, outline(row.children)) for row in rows]


BLOCK: Outline = [("Linear", 3, []), ("ReLU", 3, [])]


def test_a_training_loop_has_the_tree_of_its_model(tmp_path: Path) -> None:
    net = Net()

    def run() -> None:
        for _ in range(3):
            net(torch.randn(16, 64, requires_grad=True)).backward()

    trace = record(tmp_path, run, with_stack=True)
    payload = build_modules(trace, NoParams())
    assert outline(payload.rows) == [("Net", 3, [("Block", 3, BLOCK), ("Block", 3, BLOCK), ("Linear", 3, [])])]
    (root,) = payload.rows
    first, second, head = root.children
    # add in each block, mean in the net
    assert [root.operators, first.operators, second.operators, head.operators] == [3, 3, 3, 3]
    for block in (first, second):
        for row in (block, *block.children):
            assert row.backward_host_self_ns and row.backward_host_self_ns > 0, row.name
    assert (root.backward_host_total_ns or 0) > (head.backward_host_total_ns or 0) > 0
    frames = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    recorded = sum(round(event["dur"] * 1000) for event in frames if event.get("name") == "nn.Module: Net_0")
    assert root.host_total_ns == recorded


def test_recomputed_modules_stay_in_their_place(tmp_path: Path) -> None:
    net = Net(again=True)
    trace = record(tmp_path, lambda: net(torch.randn(16, 64, requires_grad=True)).backward(), with_stack=True)
    (root,) = build_modules(trace, NoParams()).rows
    again: Outline = [("Linear", 2, []), ("ReLU", 2, [])]
    assert outline([root]) == [("Net", 1, [("Block", 2, again), ("Block", 2, again), ("Linear", 1, [])])]


def test_a_scripted_model_without_stacks(tmp_path: Path) -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
    net = torch.jit.script(torch.nn.Sequential(layers, torch.nn.Linear(64, 8)))
    trace = record(tmp_path, lambda: net(torch.randn(16, 64)), with_modules=True)
    assert any(trace.args["Module Hierarchy"].dictionary)
    payload = build_modules(trace, NoParams())
    (top,) = payload.rows
    assert (top.name, top.calls) == ("Sequential", None)
    names = [child.name for child in top.children]
    assert [name.partition(" ")[0] for name in names] == ["0", "1"]
    assert all((child.host_total_ns or 0) > 0 for child in top.children)


def test_the_reason_names_the_missing_flag(tmp_path: Path) -> None:
    net = Net()
    trace = record(tmp_path, lambda: net(torch.randn(16, 64)))
    assert "with_stack=True" in str(unavailable(trace))


def test_a_lightning_run_shows_hooks_and_modules(tmp_path: Path) -> None:
    pl = pytest.importorskip("pytorch_lightning")
    profilers = pytest.importorskip("pytorch_lightning.profilers")

    class Module(pl.LightningModule):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch: Any, index: int) -> Any:
            return self.net(batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    profiler = profilers.PyTorchProfiler(
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(str(tmp_path), worker_name="w"),
        record_module_names=True,
    )
    trainer = pl.Trainer(
        max_steps=6,
        profiler=profiler,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(tmp_path),
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.randn(64, 64), batch_size=8))
    (path,) = tmp_path.glob("*.pt.trace.json")
    payload = build_lightning(read_bytes(path.read_bytes()), NoParams())
    hooks = {row.name: row for row in flat(payload.hooks)}
    assert hooks["SingleDeviceStrategy.training_step"].calls == 2
    assert hooks["SingleDeviceStrategy.training_step"].owner == "Strategy"
    assert "Module.optimizer_step" in hooks
    (net,) = payload.rows
    assert (net.name, net.calls) == ("net", 2)
    # The list of blocks is never called itself; the blocks are inside the net.
    assert [child.name for child in net.children] == ["net.blocks.0", "net.blocks.1", "net.head"]
    assert net.children[0].children[0].name == "net.blocks.0.linear"
    assert payload.has_backward and (net.backward_host_total_ns or 0) > 0


def flat(rows: Any) -> Any:
    for row in rows:
        yield row
        yield from flat(row.children)
