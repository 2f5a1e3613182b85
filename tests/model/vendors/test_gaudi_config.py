"""A configuration of Gaudi's profiler: what it asks for, what it leaves out, and where a trace contradicts it."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.producers import gaudi
from tests.support.producers.gaudi import NIC, STEP
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli.main import main
from torch_tb_profiler.ingest.gaudi_config import read_gaudi_config
from torch_tb_profiler.model.vendors.gaudi import GaudiConfig, find_omissions
from torch_tb_profiler.session import Root, Session


def write_config(
    *, card: bool = True, host: bool = True, phase: str = "profileApi", units: dict[str, bool] | None = None
) -> dict[str, Any]:
    """Return a configuration as `hl-prof-config` lays it out."""
    switches = {unit: {"enable": {"value": on}} for unit, on in (units or {"NIC": True}).items()}
    options = {
        "arch": {"value": "gaudi2"},
        "profilePhase": {"value": phase},
        "traceBufferSize": {"value": "0x8000000"},
    }
    values = {
        "archProfileUnits": {"gaudi2": switches, "gaudi3": {"TPC": {"enable": {"value": False}}}},
        "generalOptions": options,
    }
    return {
        "GeneralSettings": {"values": {"session": {"value": "train"}}},
        "Plugins": [
            {"name": "HostProfiler", "lib": "libhost_profiler.so", "enable": host, "values": {}},
            {"name": "HwTrace", "lib": "libhw_trace.so", "enable": card, "values": values},
        ],
    }


def parse(config: Any) -> GaudiConfig:
    return read_gaudi_config(io.BytesIO(json.dumps(config).encode()), "prof_config.json")


def test_a_configuration_is_read_for_the_generation_that_it_chooses() -> None:
    assert parse(write_config(units={"NIC": True, "EDMA": False})) == GaudiConfig(
        "prof_config.json", True, True, "gaudi2", "profileApi", 128 << 20, True, {"NIC": True, "EDMA": False}
    )


@pytest.mark.parametrize(
    ("changes", "words", "certain"),
    [
        ({"card": False}, "Won't record any work of the card", True),
        ({"host": False}, "Won't record Synapse's calls on the host", True),
        ({"phase": "multiEnq"}, "not when PyTorch's profiler does", False),
        (
            {"units": {"NIC": True, "EDMA": False, "PDMA": False}},
            "Won't record memory copies: EDMA and PDMA are off",
            True,
        ),
        ({"units": {"NIC": False}}, "Won't record transfers between cards: NIC is off", True),
        ({"units": {"TPC": True}}, "Doesn't turn NIC on", False),
    ],
)
def test_what_a_configuration_leaves_out_is_said_with_what_turns_it_on(
    changes: dict[str, Any], words: str, certain: bool
) -> None:
    (found,) = find_omissions(parse(write_config(**changes)))
    assert words in found.sentence and "hl-prof-config" in found.sentence
    assert found.certain == certain


def test_a_configuration_that_records_everything_leaves_nothing_out() -> None:
    assert find_omissions(parse(write_config(units={"NIC": True, "EDMA": False, "PDMA": True}))) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{", "isn't JSON"), (b"[]", "names no plugins"), (b"{}", "names no plugins"), (b"\xff", "isn't JSON")],
)
def test_a_broken_configuration_says_which_file_and_what_to_do(content: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words) as found:
        read_gaudi_config(io.BytesIO(content), "prof_config.json")
    assert found.value.where == "prof_config.json" and "hl-prof-config" in str(found.value.hint)


@pytest.mark.parametrize("value", ["a lot", -1, 0, True, None, [], {}, 1.5])
def test_a_buffer_without_a_size_is_unknown(value: object) -> None:
    config = write_config()
    config["Plugins"][1]["values"]["generalOptions"]["traceBufferSize"] = {"value": value}
    assert parse(config).buffer_bytes is None


def overview(
    folder: Path, config: bytes, nodes: Sequence[gaudi.EngineNode] = STEP
) -> tuple[dict[str, Any], list[str]]:
    """Return the Overview's configuration and its health notes of a run with this file beside its trace."""
    (folder / "run").mkdir()
    (folder / "run" / "worker.1.pt.trace.json").write_bytes(gaudi.content(nodes=nodes))
    (folder / "run" / "prof_config.json").write_bytes(config)
    with Session([Root(str(folder))], Settings(cache_dir=str(folder / "cache"))) as session:
        session.scan()
        answer = session.view("overview", wait=True, timeout=PATIENCE)
        assert answer.payload is not None, answer.state
        payload = json.loads(answer.payload)
        (span,) = session.catalog.runs[0].workers[0].spans
        notes = [*payload["health"], *({"message": each.message} for each in session.health(span))]
    configuration: dict[str, Any] = payload["configuration"]
    return configuration, [each["message"] for each in notes]


@pytest.mark.parametrize(
    ("changes", "nodes", "words"),
    [
        ({"card": False}, STEP, "HwTrace is off, but the trace has work of the card"),
        ({"units": {"NIC": False}}, STEP, "NIC is off, but the trace has events of NIC"),
        (
            {"units": {"NIC": True}},
            [node for node in STEP if node.type != NIC],
            "NIC is on, but the trace has no event of NIC",
        ),
        ({"units": {"NIC": True}}, STEP, None),
        ({"units": {"NIC": True, "EDMA": False, "PDMA": True}}, STEP, None),
    ],
)
def test_the_overview_says_where_the_trace_contradicts_its_configuration(
    changes: dict[str, Any], nodes: Sequence[gaudi.EngineNode], words: str | None, tmp_path: Path
) -> None:
    configuration, notes = overview(tmp_path, json.dumps(write_config(**changes)).encode(), nodes)
    recorder = configuration["recorder"]
    assert recorder["file"] == "prof_config.json" and recorder["asked"]["Generation"] == "gaudi2"
    assert any(words in each for each in recorder["contradictions"]) if words else recorder["contradictions"] == []
    assert (
        any(words in each for each in notes)
        if words
        else not any("another configuration" in each for each in notes)
    )


def test_a_broken_configuration_costs_a_note_and_nothing_else(tmp_path: Path) -> None:
    configuration, notes = overview(tmp_path, b"{")
    assert configuration["recorder"] is None and configuration["recorded"]["device"]
    assert any("prof_config.json" in each and "isn't JSON" in each for each in notes)


@pytest.mark.parametrize(("card", "code"), [(True, 0), (False, 1)])
def test_check_judges_a_configuration_before_a_run(
    card: bool, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(write_config(card=card)))
    assert main(["check", str(path)]) == code
    text = capsys.readouterr().out
    assert "asks    Generation: gaudi2\n" in text
    assert ("lacks   Won't record any work of the card" in text) == (not card)
    assert main(["check", str(path), "--format", "json"]) == code
    assert json.loads(capsys.readouterr().out)["configuration"]["asked"]["Buffer on the card"] == "128 MiB"
