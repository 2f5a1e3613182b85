"""The Lightning tab: hooks and modules as a tree, and the sentences above them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.traces import draw
from tests.support.views import ask, words
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.availability import lightning_reason as unavailable
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.lightning import build

HOOKS = """
    host   {cat}          [pl][profile]run_training_batch                               0  200
    host   {cat}          [pl][profile][LightningModule]L.optimizer_step                5  190
    host   {cat}          [pl][profile][Strategy]SingleDeviceStrategy.training_step    10   60
    host   {cat}          [pl][module]torch.nn.modules.container.Sequential:~net       15   50
    host   {cat}          [pl][module]torch.nn.modules.linear.Linear:~net.layers.0     20   30
    host   cpu_op         aten::addmm             25  20   Sequence number=1
    host   cuda_runtime   cudaLaunchKernel        30   5   correlation=1
    host   {cat}          [pl][profile][Strategy]SingleDeviceStrategy.backward         100  80
    host2  cpu_op         AddmmBackward0         110  40   Sequence number=1 Fwd thread id=1
    host2  cuda_runtime   cudaLaunchKernel       120   5   correlation=2
    gpu0   kernel         gemm                    60  10   correlation=1 stream=7
    gpu0   kernel         gemm_backward          160  25   correlation=2 stream=7
    gpu0   gpu_user_annotation  [pl][profile]run_training_batch  60  130  stream=7
    """


def flat(rows: list[Any], above: str = "") -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for row in rows:
        path = f"{above}/{row['name']}".lstrip("/")
        paths |= {path: row, **flat(row["children"], path)}
    return paths


@pytest.mark.parametrize("category", ["user_annotation", "cpu_op", "Operator"])
def test_hooks_are_a_tree_whatever_category_marks_them(category: str) -> None:
    payload = ask(draw(HOOKS.format(cat=category)), "lightning")
    hooks = flat(payload["hooks"])
    step = "run_training_batch/L.optimizer_step"
    assert list(hooks) == [
        "run_training_batch",
        step,
        f"{step}/SingleDeviceStrategy.training_step",
        f"{step}/SingleDeviceStrategy.backward",
    ]
    assert [hook["owner"] for hook in hooks.values()] == ["", "LightningModule", "Strategy", "Strategy"]
    assert (hooks[step]["host_total_ns"], hooks[step]["host_self_ns"]) == (190_000, 50_000)
    assert hooks["run_training_batch"]["calls"] == 1


def test_the_hook_that_waits_for_backward_has_its_device_work() -> None:
    hooks = flat(ask(draw(HOOKS.format(cat="user_annotation")), "lightning")["hooks"])
    device = {
        path.rpartition(".")[2]: (row["device_self_ns"], row["device_total_ns"]) for path, row in hooks.items()
    }
    assert device == {
        "run_training_batch": (0, 35_000),
        "optimizer_step": (0, 35_000),
        "training_step": (10_000, 10_000),
        "backward": (25_000, 25_000),
    }


def test_modules_nest_as_their_names_say() -> None:
    """`layers` is a list, which is never called: its items belong to the module around it."""
    payload = ask(draw(HOOKS.format(cat="user_annotation")), "lightning")
    modules = flat(payload["rows"])
    assert list(modules) == ["net", "net/net.layers.0"]
    linear = modules["net/net.layers.0"]
    assert linear["class_name"] == "torch.nn.modules.linear.Linear"
    assert (linear["host_total_ns"], linear["host_self_ns"], linear["operators"]) == (30_000, 10_000, 1)
    assert (linear["forward_device_self_ns"], linear["backward_device_self_ns"]) == (10_000, 25_000)
    own = sum(row["device_self_ns"] for row in modules.values())
    assert (
        own + payload["outside"]["device_ns"] + payload["unlinked"]["device_ns"] == payload["device_ns"] == 35_000
    )


def test_what_is_not_marked_has_a_reason() -> None:
    assert "PyTorchProfiler" in str(unavailable(draw("host cpu_op aten::mm 0 10")))
    only_hooks = ask(draw("host user_annotation [pl][profile]run 0 10"), "lightning")
    assert only_hooks["rows"] == [] and "record_module_names" in words(only_hooks["reasons"]["rows"])
    only_modules = ask(draw("host user_annotation [pl][module]torch.nn.ReLU:~act 0 10"), "lightning")
    assert only_modules["hooks"] == [] and "[pl][profile]" in words(only_modules["reasons"]["hooks"])


def test_copies_on_the_device_are_no_hooks() -> None:
    trace = draw("gpu0 gpu_user_annotation [pl][profile]run 0 10 stream=7")
    assert unavailable(trace) is not None


NESTED = """
    host  user_annotation  [pl][profile]run                 0  100
    host  user_annotation  [pl][profile][L]L.training_step 10   75
    host  cpu_op           aten::mm                        20   10
"""


def test_the_hook_with_the_most_time_outside_of_nested_hooks() -> None:
    payload = build(draw(NESTED), NoParams())
    assert plain(payload.headline) == "L.training_step is the top hook: 75% of the time in hooks."
    (link,) = (phrase.link for phrase in payload.headline if phrase.link is not None)
    assert link == "lightning?show=hooks&q=L.training_step"
    assert plain(payload.details) == (
        "2 hooks ran for 100 µs on the host. Time in a nested hook counts only for that hook."
    )


def test_hooks_that_took_no_time() -> None:
    payload = build(draw("host user_annotation [pl][profile]run 0 0"), NoParams())
    assert plain(payload.headline) == "No time was recorded in hooks."
    assert plain(payload.details).startswith("1 hook ran for 0 ns")


def test_without_hooks_the_headline_is_about_the_modules() -> None:
    payload = build(draw("host user_annotation [pl][module]torch.nn.ReLU:~act 0 10"), NoParams())
    assert plain(payload.headline) == "ReLU is the top module: 100% of module host time."
    assert payload.headline[0].link == "lightning?place=0"
    assert payload.details == ()
