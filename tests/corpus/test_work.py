"""Work of operators on real traces: conservation, known totals, and what TraceLens answers for matrix products."""

from __future__ import annotations

import ast
import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from tests.corpus import real_traces
from torch_tb_profiler.analyses.roofline.table import EVENT_GROUPINGS, GroupBy, WorkFilter, roofline_table
from torch_tb_profiler.analyses.roofline.tokens import count_tokens
from torch_tb_profiler.analyses.roofline.utilization import utilization
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.work.operator_work import OperatorWork, operator_work
from torch_tb_profiler.views._shared.text import plain as plain_text
from torch_tb_profiler.views.roofline.build import build
from torch_tb_profiler.views.roofline.payload import RooflineParams

pytestmark = real_traces.MARKS


def test_owned_unmodeled_and_unlinked_work_is_all_device_time(corpus: Path) -> None:
    seen = 0
    for path in real_traces.files(corpus):
        for trace in real_traces.ranks(path).values():
            done = operator_work(trace)
            length = event_ends(trace) - trace.events.start
            unlinked = int(length[done.owners.events[done.owners.call < 0]].sum())
            modeled = int(done.device[done.owners.modeled].sum())
            unmodeled = int(done.device[~done.owners.modeled].sum())
            assert modeled + unmodeled + unlinked == int(length[rows_of_kind(trace, *DEVICE_KINDS)].sum()), path
            assert unlinked == int(length[device_links(trace).rows[device_links(trace).operator < 0]].sum()), path
            assert (done.busy <= done.device).all(), path
            unknown = np.isnan(done.flops) | np.isnan(done.bytes)
            assert (unknown == (done.reason >= 0)).all(), path  # never unknown without its reason
            assert (done.flops[~np.isnan(done.flops)] >= 0).all(), path
            _rows_sum_to_all(trace, done, path)
            seen += 1
    assert seen > 100


def _rows_sum_to_all(trace: Trace, done: OperatorWork, path: Path) -> None:
    """Check that device time and FLOPs of the rows add up to the trace, or the step, however they are grouped."""
    length = (event_ends(trace) - trace.events.start)[rows_of_kind(trace, *DEVICE_KINDS)]
    spans = steps(trace)
    for step in ["", *dict.fromkeys(spans.names[:2] if spans.recorded else [])]:
        sums = {}
        for group_by in get_args(GroupBy):
            table = roofline_table(trace, group_by, WorkFilter(step), "")
            device = int(table.groups.sums(table.items.device).sum())
            sums[group_by] = device + (0 if group_by in EVENT_GROUPINGS else table.unlinked_ns)
            assert step or sums[group_by] == int(length.sum()), (path, group_by)
            if not step:
                assert np.nansum(table.items.flops) == pytest.approx(np.nansum(done.flops)), (path, group_by)
        assert len(set(sums.values())) == 1, (path, step)


@pytest.mark.parametrize(
    ("run", "gflop", "mfu"),
    [
        ("tl_h100_qwen15", 5760.28, 0.1655),
        ("tl_h100_owlv2", 29166.4, 0.0243),
        ("tl_mi300_xdit_sd35", 264455.0, 0.1692),
    ],
)
def test_matrix_operators_compute_what_was_counted_independently(
    corpus: Path, run: str, gflop: float, mfu: float
) -> None:
    trace = real_traces.of_run(corpus, run)
    done = operator_work(trace)
    assert np.nansum(done.needed[done.matrix]) / 1e9 == pytest.approx(gflop, rel=2e-6)
    assert utilization(trace, WorkFilter(), "").mfu == pytest.approx(mfu, abs=5e-5)


def test_convolution_backward_is_twice_forward_less_what_is_masked(corpus: Path) -> None:
    """The first convolution wants no gradient of the image, and checkpointing computes 57 forward again."""
    trace = real_traces.of_run(corpus, "tl_mi300_resnet_actckpt_8rank")
    done = operator_work(trace)
    names = np.array([trace.strings[code] for code in trace.events.name[done.owners.calls]])
    forward = names == "aten::miopen_convolution"
    backward = names == "aten::convolution_backward"
    gflop = done.flops / 1e9
    assert gflop[forward & ~done.recomputed].sum() == pytest.approx(108.814, abs=5e-4)
    assert gflop[backward].sum() == pytest.approx(210.547, abs=5e-4)
    assert gflop[forward & done.recomputed].sum() == pytest.approx(101.733, abs=5e-4)
    assert int((forward & done.recomputed).sum()) == 57
    assert not done.recomputed[backward].any()
    used = utilization(trace, WorkFilter(), "")
    assert used.mfu == pytest.approx(0.00432, abs=5e-6)
    assert used.hfu == pytest.approx(0.00570, abs=5e-6)
    masked = 2 * gflop[forward & ~done.recomputed].sum() - gflop[backward].sum()
    assert masked == pytest.approx(3 * 2 * 3 * 7 * 7 * 10 * 64 * 112 * 112 / 1e9)


LEAST_LINKED = 0.98
"""Of the time of operators that are no communication, the share whose work is known, where nothing is compiled."""


def test_nearly_all_eager_work_is_known(corpus: Path) -> None:
    for run in (
        "tl_h100_qwen15",
        "tl_h100_owlv2",
        "tl_h100_nsfw_det",
        "tl_mi300_timesformer",
        "tl_mi300_bert_small",
        "tl_mi300_resnet_actckpt_8rank",
        "tl_mi300_xdit_sd35",
    ):
        trace = real_traces.of_run(corpus, run)
        done = operator_work(trace)
        names = [trace.strings[code] for code in trace.events.name[done.owners.calls]]
        eager = np.array([not name.startswith("record_param_comms") for name in names])
        known = ~np.isnan(done.bytes)
        assert done.device[eager & known].sum() >= LEAST_LINKED * done.device[eager].sum(), run


def test_replays_of_graphs_are_said_to_be_unknown(corpus: Path) -> None:
    for run in ("tl_b300_qwen3moe_decode", "tl_mi300_deepseek_decode"):
        trace = real_traces.of_run(corpus, run)
        used = utilization(trace, WorkFilter(), "")
        assert used.coverage is not None
        assert used.coverage < 0.05, run
        payload = build(trace, RooflineParams())
        assert "(work known for " in plain_text(payload.headline) or "n't known" in plain_text(payload.headline), (
            run
        )


def test_engines_tell_how_many_tokens_go_through_the_model(corpus: Path) -> None:
    found = count_tokens(real_traces.of_run(corpus, "tl_rocm_vllm_piecewise"))
    assert found is not None
    assert (found.iterations, found.prompt, found.generating) == (1, 8155, 37)
    decoding = count_tokens(real_traces.of_run(corpus, "tl_mi300_deepseek_decode"))
    assert decoding is not None
    assert (decoding.iterations, decoding.prompt, decoding.generating) == (1, 0, 16)  # two streams repeat its name
    assert count_tokens(real_traces.of_run(corpus, "tl_h100_qwen15")) is None


# ---- TraceLens ------------------------------------------------------------------------------------------

KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
Row = dict[str, str]


def gemms(corpus: Path) -> Iterator[tuple[str, Row]]:
    for path in sorted((corpus / "oracle" / "tracelens").glob("*/GEMM.csv")):
        with path.open(newline="") as stream:
            for row in csv.DictReader(stream):
                yield path.parent.name, row


def plain(value: Any) -> Any:
    """Return lists and tuples as tuples, and all else as it is."""
    return tuple(plain(each) for each in value) if isinstance(value, (list, tuple)) else value


def key(name: str, texts: list[str | None]) -> tuple[Any, ...]:
    return (name, *(plain(ast.literal_eval(text)) if text else None for text in texts))


def ours(trace: Trace, done: OperatorWork) -> dict[tuple[Any, ...], list[float]]:
    """Return signature -> calls, us, FLOPs and bytes of one call."""
    columns = [trace.arg_codes(each, done.owners.calls) for each in KEYS]
    found: dict[tuple[Any, ...], list[float]] = defaultdict(lambda: [0, 0, 0, 0])
    for at, row in enumerate(done.owners.calls.tolist()):
        texts = [json.dumps(json.loads(t[c[at]])) if c[at] >= 0 else None for c, t in columns]
        cell = found[key(trace.strings[trace.events.name[row]], texts)]
        cell[0] += 1
        cell[1] += done.busy[at] / 1000
        cell[2:] = [done.flops[at], done.bytes[at]]
    return found


JOINED = ("tl_rocm_vllm_piecewise", "tl_mi300_sglang_decode")
"""Runs that TraceLens joined with the trace of a graph's capture: most of its rows are no calls of the run."""


def test_matrix_products_are_those_of_tracelens(corpus: Path) -> None:
    """Count, time and bytes of every comparable row; FLOPs, but that it adds M N for a bias and we do not."""
    verdicts: Counter[str] = Counter()
    tables: dict[str, dict[tuple[Any, ...], list[float]]] = {}
    for run, row in gemms(corpus):
        if run not in tables:
            trace = real_traces.of_run(corpus, run)
            tables[run] = ours(trace, operator_work(trace))
        found = tables[run].get(key(row["name"], [row[f"{each}_first"] for each in KEYS]))
        if found is None:
            assert run in JOINED, (run, row["name"], row["Input Dims_first"])
            verdicts["from the trace of the capture, or a wrapper beside its operator"] += 1
            continue
        calls, time, flops, moved = found
        assert calls == float(row["name_count"]), (run, row["name"], row["Input Dims_first"])
        assert time == pytest.approx(float(row["Kernel Time (µs)_sum"]), rel=1e-4), (run, row["Input Dims_first"])
        assert moved == pytest.approx(float(row["Data Moved (MB)_first"]) * 2**20), (run, row["Input Dims_first"])
        theirs = 1e9 * float(row["GFLOPS_first"])
        if flops == pytest.approx(theirs, rel=1e-12):
            verdicts["equal"] += 1
        else:
            bias = float(row["param: M"]) * float(row["param: N"]) * float(row["param: B"] or 1)
            assert theirs - flops == pytest.approx(bias), (run, row["name"], row["Input Dims_first"])
            verdicts["a bias added"] += 1
    assert verdicts == {
        "equal": 41,
        "a bias added": 35,
        "from the trace of the capture, or a wrapper beside its operator": 16,
    }
