"""The hooks of Lightning and of Hugging Face's Trainer, in trainings by the real libraries."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import torch_tb_profiler as ttp
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.errors import MissingExtraError

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def record(example: str, library: str, run: Path) -> list[str]:
    """Return what a training prints on stderr that records three steps, as its users run it."""
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed (extra `trainers`)")
    command = [sys.executable, str(ROOT / "examples" / f"{example}.py"), "--logdir", str(run), "--steps", "3"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command, cwd=run.parent, env=environment, capture_output=True, text=True, timeout=5 * PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_lightning_records_with_its_own_profiler(tmp_path: Path) -> None:
    lines = record("train_lightning", "pytorch_lightning", tmp_path / "run")
    with ttp.open(str(tmp_path)) as log:
        run = log["run"]
        assert len(run.overview().data.steps) == 3
        assert "run_training_batch" in {hook.name for hook in run.lightning().data.hooks}
        assert {row.name for row in run.modules().data.classes} >= {"Conv2d", "Linear"}
    said_in_five_lines(lines, tmp_path / "run")


def test_the_trainer_of_hugging_face_records_with_a_callback(tmp_path: Path) -> None:
    lines = record("train_hugging_face", "transformers", tmp_path / "run")
    with ttp.open(str(tmp_path)) as log:
        run = log["run"]
        assert len(run.overview().data.steps) == 3
        layers = next(row for row in run.modules().data.classes if row.name == "BertLayer")
        assert layers.calls == 2 * 3
    said_in_five_lines(lines, tmp_path / "run")


def said_in_five_lines(lines: list[str], folder: Path) -> None:
    (file,) = folder.iterdir()
    first = next(position for position, line in enumerate(lines) if line.startswith(f"Trace written: {file} ("))
    assert lines[first + 2].startswith(("A step takes ", "A typical step takes "))
    assert lines[first + 4] == f"For details: tensorboard --logdir {folder}"


def test_training_continues_without_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("torch")
    transformers = ModuleType("transformers")
    transformers.TrainerCallback = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    monkeypatch.delitem(sys.modules, "torch_tb_profiler.training.hugging_face", raising=False)
    callback = ttp.trainer_callback(tmp_path, no_option_of_torch=1)
    with caplog.at_level(logging.WARNING, "torch_tb_profiler"):
        callback.on_train_begin(None, None, None)
        callback.on_step_end(None, None, None)
        callback.on_train_end(None, None, None)
    assert len(caplog.records) == 1
    assert "The training is not profiled" in caplog.text and "no_option_of_torch" in caplog.text
    monkeypatch.delitem(sys.modules, "torch_tb_profiler.training.hugging_face")


def test_without_transformers_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "torch_tb_profiler.training.hugging_face", raising=False)
    with pytest.raises(MissingExtraError, match="transformers is not installed") as failure:
        ttp.trainer_callback(tmp_path)
    assert failure.value.hint == "pip install transformers"
