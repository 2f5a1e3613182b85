"""Every surface says where a replayed kernel comes from, and where a compiled one does."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.asking import Surfaces
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
REPLAYED, COMPILED, RENAMED = "simulated_graph_replay", "transformer_compiled", "renamed"

KERNEL, NEW_NAME = "act_and_mul_kernel_silu_bf16", "triton_poi_fused_silu_mul_7"
OPERATOR, MODULE, LINE = "_C::silu_and_mul", "Decoder_0/Layer_3/MLP_0", "model.py:53"
"""Where the replays have one of the kernels from: what the capture says."""

COMPILED_LINE = "train_compiled.py:36"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    """Ask a session over the two samples, and the first with one of its kernels renamed."""
    folder = tmp_path_factory.mktemp("log")
    for run in (REPLAYED, COMPILED, RENAMED):
        source = SAMPLES / (REPLAYED if run == RENAMED else run)
        for path in source.rglob("*.*"):
            data = path.read_bytes()
            if run == RENAMED:
                data = gzip.compress(gzip.decompress(data).replace(KERNEL.encode(), NEW_NAME.encode()))
            target = folder / run / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    settings = Settings(cache_bytes=0, small_file_bytes=1 << 50, memory_bytes=1 << 50)
    with Session([Root(str(folder))], settings) as session:
        session.scan()
        yield Surfaces(session, folder)


def payload(samples: Surfaces, slug: str, run: str = REPLAYED, **params: str) -> dict[str, Any]:
    answer = samples.session.view(slug, run, params=params, wait=True)
    assert answer.payload is not None
    found: dict[str, Any] = json.loads(answer.payload)
    return found


def row_with(rows: list[dict[str, Any]], **values: Any) -> dict[str, Any]:
    (found,) = [row for row in rows if all(row[name] == value for name, value in values.items())]
    return found


def test_each_tab_has_a_replayed_kernel_where_it_was_captured(samples: Surfaces) -> None:
    kernel = row_with(payload(samples, "kernels")["rows"], name=KERNEL)
    assert (kernel["origin_operator"], kernel["origin_line"]) == (OPERATOR, LINE)
    operators = payload(samples, "operators")
    replayed = row_with(operators["replayed"], operator=OPERATOR, module=MODULE)
    assert (replayed["lines"][0], replayed["kernels"]) == (LINE, 14)
    assert payload(samples, "operators", phase="forward")["replayed"] == operators["replayed"]
    assert payload(samples, "operators", phase="backward")["replayed"] == []
    modules = payload(samples, "modules")
    layer = row_with(modules["rows"][0]["children"], name="Layer_3")
    assert row_with(layer["children"], name="MLP_0")["device_self_ns"] == replayed["ns"]
    flame = payload(samples, "modules/flame", time="device")
    assert {node["name"] for node in flame["frames"]} >= {"MLP_0", OPERATOR}
    assert row_with(payload(samples, "roofline")["rows"], name=OPERATOR)["calls"] == 112
    assert row_with(payload(samples, "origins")["rows"], operator=OPERATOR, module=MODULE)["how"] == "capture"
    work = payload(samples, "serving/origins")["rows"]
    assert OPERATOR in {row["operator"] for row in work} and MODULE in {row["module"] for row in work}
    hits = payload(samples, "trace/search", query=f"module:{MODULE}")
    assert hits["hits"] == 14 == payload(samples, "trace/search", query=f"line:{LINE}")["hits"] / 8


def test_a_selected_kernel_and_the_critical_path_name_its_line(samples: Surfaces) -> None:
    event = row_with(payload(samples, "origins")["rows"], operator=OPERATOR, module=MODULE)["event"]
    origin = payload(samples, "origins/event", event=str(event))
    assert "/".join(origin["modules"]) == MODULE
    assert [f"{line['file']}:{line['line']}" for line in origin["lines"]][0] == LINE
    for by, place in (("operator", OPERATOR), ("module", MODULE), ("line", "model.py(53)")):
        groups = payload(samples, "critical_path/groups", by=by)["rows"]
        assert place in {group["name"] for group in groups}, by


def test_a_renamed_kernel_of_the_same_origin_is_one_row_of_the_diff(samples: Surfaces) -> None:
    found = payload(samples, "diff", RENAMED, base_run=REPLAYED)
    names = {(row["name"], row["candidate_name"]) for row in found["kernels"]}
    assert (KERNEL, NEW_NAME) in names


def test_what_no_page_shows_names_the_origin_too(samples: Surfaces) -> None:
    for slug in ("kernels", "operators", "modules", "roofline", "origins"):
        whole = samples.answered(slug, REPLAYED)
        assert samples.http(slug, REPLAYED) == whole == samples.command_line(slug, REPLAYED)
        assert samples.python(slug, REPLAYED) == whole == samples.report(slug, REPLAYED)
    for slug, words in (
        ("kernels", f"{OPERATOR} · {LINE}"),
        ("operators", MODULE),
        ("modules", "MLP_0"),
        ("roofline", OPERATOR),
        ("origins", MODULE),
    ):
        code, out, _ = samples.command(
            "view", slug, str(samples.path), "--run", REPLAYED, "--format", "table", "--limit", "0"
        )
        assert code == 0 and words in out, slug
        assert OPERATOR.split("::")[1] in samples.tools.view(slug, REPLAYED) or slug == "modules", slug
    _, summary, _ = samples.command("summary", str(samples.path), "--run", REPLAYED)
    assert "`aten::linear`" in summary and "traced to a source line" in summary
    kernels = samples.log[REPLAYED].columns().kernels.to_pylist()
    assert {row["origin_line"] for row in kernels if row["name"] == KERNEL} == {LINE}
    origins = samples.log[REPLAYED].columns().origins.to_pylist()
    assert {row["lines"][0] for row in origins if row["name"] == KERNEL} == {LINE}


def test_compiled_kernels_have_their_lines(samples: Surfaces) -> None:
    rows = payload(samples, "origins", COMPILED)["rows"]
    fused = next(row for row in rows if "fused" in row["name"] and (row["line"] or "").endswith(COMPILED_LINE))
    table = payload(samples, "operators", COMPILED)
    region = next(row for row in table["rows"] if row["name"].startswith("Torch-Compiled Region"))
    unfolded = payload(samples, "operators/origins", COMPILED, event=str(region["event"]))
    assert any(row["lines"][0].endswith(COMPILED_LINE) for row in unfolded["rows"])
    hits = payload(samples, "trace/search", COMPILED, query=f"line:{COMPILED_LINE}")
    assert hits["hits"] > 0
    card = payload(samples, "origins/event", COMPILED, event=str(fused["event"]))
    assert card["nodes"] or card["lines"]
    (note,) = [each for each in payload(samples, "overview", COMPILED)["health"] if each["kind"] == "origins"]
    assert note["message"] == "100% of compiled kernel time on the CPU is traced to a source line"
