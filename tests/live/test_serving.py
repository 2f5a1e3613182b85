"""An engine that runs here and now: its trace against what it counted itself."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import torch_tb_profiler as ttp
from tests.support.waiting import PATIENCE
from torch_tb_profiler.analyses.serving.idle import serving_times
from torch_tb_profiler.analyses.serving.summary import serving_rates
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.serving.labels import PHASES
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.serving.build import build

pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[2] / "examples" / "serve.py"


def test_the_trace_says_what_the_engine_counted(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(EXAMPLE), "--logdir", str(tmp_path)], check=True, timeout=5 * PATIENCE)
    counted = json.loads((tmp_path / "counted.json").read_text(encoding="utf-8"))
    path = next(tmp_path.glob("*.pt.trace.json.gz"))
    with path.open("rb") as stream:
        trace = read_trace(stream, size=path.stat().st_size)
    found, times, rates = serving_iterations(trace), serving_times(trace), serving_rates(trace)
    assert found is not None and times is not None and rates is not None
    own = counted["iterations"]
    assert [PHASES[phase] for phase in found.phase] == [each["phase"] for each in own]
    assert {each["phase"] for each in own} == {"prefill", "decode", "mixed"}
    for name in ("prompt_tokens", "decode_requests", "kv_tokens"):
        assert getattr(found, name).tolist() == [each[name] for each in own], name
    # A prefill makes the first token of each of the 24 requests; the labels count the others.
    assert rates.output_tokens == counted["output_tokens"] - 24
    assert not times.on_device and (times.work > 0).all()
    payload = build(trace, NoParams())
    assert payload.engine.name == "vLLM" and payload.cost.iterations == len(own)
    assert payload.cost.per_prompt_token_ns.value is not None or payload.cost.per_prompt_token_ns.reason
    # The spans of its requests lie beside the trace.
    with ttp.open(str(tmp_path)) as log:
        with_spans = next(iter(log.runs.values())).serving().data
    first = counted["time_to_first_token"]
    assert with_spans.rates.arrivals is not None and with_spans.requests is not None
    assert sorted(each or 0 for each in with_spans.requests.first_token_ns) == pytest.approx(
        [1e9 * each for each in first], abs=1000
    )
    assert with_spans.rates.time_to_first_token_ns == pytest.approx(1e9 * statistics.median(first), rel=0.01)
