"""The payloads that the page's tests draw: each view of drawn runs, as the server sends it.

`python -m tests.support.payloads` writes them to tests/golden/payloads, one file per view: its payload and those
of the parts that it asks for, by slug.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.support.dumps import hung_job
from tests.support.jobs import Job, ddp
from tests.support.page import MEMORY_TIMELINE, draw_leak, draw_training, model, products, two_streams
from tests.support.producers.aorta import Busy, iteration, line, write
from tests.support.serving import Workload, serving_document
from tests.support.serving_ranks import rank_document
from tests.support.snapshots import snapshot
from torch_tb_profiler.session import open_session

GOLDEN = Path(__file__).parents[1] / "golden" / "payloads"

RAW_NAME = (
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_64x3_nn_align8>("
    "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_64x3_nn_align8::Params)"
)
"""A kernel as its compiler calls it. No view shows this as the name of anything."""


class Ask(NamedTuple):
    slug: str
    run: str
    params: Mapping[str, str] = {}


_BASE = {"base_run": "training", "base_worker": "w", "base_span": "1"}
_EVENT = {"event": "2"}
_KERNEL = {"event": "4"}
_WINDOW = {"begin": "0", "end": "3000000"}
_WAIT = {"device": "0", "at": "0", "until": "3000000", "category": "operator"}
ASKS = (
    Ask("overview", "training"),
    Ask("overview/preview", "training"),
    Ask("overview/ranks", "job"),
    Ask("operators", "training"),
    Ask("operators/instances", "training", _EVENT),
    Ask("operators/stacks", "training", _EVENT),
    Ask("operators/origins", "training", _EVENT),
    Ask("kernels", "training"),
    Ask("kernels/instances", "training", _KERNEL),
    Ask("kernels/origins", "training", _KERNEL),
    Ask("idle", "training"),
    Ask("idle/ranks", "job"),
    Ask("idle/gaps", "training", {"cause": "operator"}),
    Ask("idle/flame", "streams", {"stream": "7"}),
    Ask("idle/launches", "training"),
    Ask("idle/queue", "training", {"points": "20"}),
    Ask("idle/bandwidth", "training", {"points": "20"}),
    Ask("idle/sequences", "streams"),
    Ask("critical_path", "training"),
    Ask("critical_path/what_if", "training", {"target": "host"}),
    Ask("critical_path/groups", "training", {"by": "operator"}),
    Ask("critical_path/pieces", "training"),
    Ask("critical_path/ranks", "job"),
    Ask("critical_path/beside", "job"),
    Ask("roofline", "work"),
    Ask("trace", "training"),
    Ask("trace/event", "training", _EVENT),
    Ask("trace/flows", "training", _EVENT),
    Ask("trace/module", "training", _EVENT),
    Ask("trace/selection", "training", _WINDOW),
    Ask("trace/headline", "training", _WINDOW),
    Ask("trace/names", "training", {"codes": "0,1"}),
    Ask("trace/search", "training", {"query": "sgemm"}),
    Ask("trace/hits", "training", {"query": "sgemm", **_WINDOW}),
    Ask("trace/colors", "training", {"by": "module"}),
    Ask("trace/tile", "training", {**_WINDOW, "width": "40"}),
    Ask("trace/blame", "training", {**_WINDOW, "width": "40"}),
    Ask("trace/moment", "training", _WAIT),
    Ask("trace/path", "training", _WINDOW),
    Ask("trace/counters", "training", {**_WINDOW, "width": "40"}),
    Ask("modules", "modules"),
    Ask("modules/flame", "modules", {"time": "device"}),
    Ask("modules/calls", "modules"),
    Ask("modules/instances", "modules", {"place": "0"}),
    Ask("origins", "training"),
    Ask("origins/event", "training", _EVENT),
    Ask("lightning", "modules"),
    Ask("lightning/flame", "modules", {"time": "device"}),
    Ask("lightning/instances", "modules", {"place": "0"}),
    Ask("serving", "serving"),
    Ask("serving/iterations", "serving", {"first": "2", "last": "5"}),
    Ask("serving/origins", "serving"),
    Ask("serving/ranks", "tensor_parallel"),
    Ask("memory", "memory"),
    Ask("memory/curve", "memory", {"points": "20"}),
    Ask("memory/live", "memory"),
    Ask("memory/events", "memory", {"limit": "20"}),
    Ask("memory/operators", "memory"),
    Ask("memory/snapshot", "memory", {"file": "0"}),
    Ask("memory/instant", "memory", {"file": "0", "entry": "3"}),
    Ask("memory/map", "memory", {"file": "0"}),
    Ask("memory/compare", "snapshots", {"base_run": "snapshots", "base_worker": "rank1"}),
    Ask("memory/fit", "snapshots", {"base_run": "snapshots", "base_worker": "rank1"}),
    Ask("memory/ranks", "snapshots"),
    Ask("memory/timeline", "memory", {"file": "1"}),
    Ask("hangs", "hang"),
    Ask("distributed", "job"),
    Ask("distributed/collectives", "job"),
    Ask("distributed/collective", "job", {"collective": "0"}),
    Ask("distributed/map", "job", {"mark": "rank1"}),
    Ask("distributed/ranks", "job", {"search": "rank1", "limit": "1"}),
    *(Ask(f"distributed/{each}", "job", {"limit": "2"}) for each in ("steps", "operations", "groups", "families")),
    Ask("distributed/connections", "job", {"workers": "rank0,rank1"}),
    Ask("overlap", "iterations"),
    Ask("overlap/report", "iterations"),
    Ask("overlap/compare", "iterations", {"base_run": "iterations", "base_worker": "rank1"}),
    Ask("diff", "faster", _BASE),
    Ask("diff/part", "faster", _BASE),
)


def write_runs(folder: Path) -> None:
    job = Job(3, ddp(2), straggler=1, kernel=RAW_NAME)
    documents = {
        "training/w": draw_training(3, kernel=RAW_NAME),
        "faster/w": draw_training(3, kernel_us=300, kernel=RAW_NAME),
        "streams/w": two_streams(RAW_NAME),
        "modules/w": model(),
        "work/w": products(product=RAW_NAME),
        "memory/w": draw_leak(4, 5),
        "serving/w": serving_document(Workload(requests=6, faults={9: ("scheduler", 5000)})),
        "tensor_parallel/rank0": rank_document(Workload(requests=4)),
        "tensor_parallel/rank1": rank_document(Workload(requests=4), slower=1.2),
        **{f"job/rank{rank}": content for rank, content in job.documents().items()},
    }
    for path, content in documents.items():
        file = folder / f"{path}.pt.trace.json"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    for rank in (0, 1):
        lines = [line(step, iteration(step + 2 * rank), 500, rank=rank) for step in range(3)]
        folded = [*iteration(0), Busy("compute", 100, 200)]
        write(folder / "iterations", rank, [*lines, line(3, folded, 500, rank=rank)])
    hung_job(8, 2).write(folder / "hang")
    (folder / "memory" / "oom.pickle").write_bytes(pickle.dumps(snapshot()))
    (folder / "snapshots").mkdir()
    for rank in (0, 1):
        (folder / "snapshots" / f"rank{rank}_snapshot.pickle").write_bytes(pickle.dumps(snapshot()))
    (folder / "memory" / "w.raw.json").write_text(json.dumps(MEMORY_TIMELINE), encoding="utf-8")


def goldens() -> Iterator[tuple[str, str]]:
    """Yield the name of each file and its text."""
    with tempfile.TemporaryDirectory() as folder:
        write_runs(Path(folder))
        payloads: dict[str, dict[str, object]] = {}
        with open_session(folder) as session:
            for slug, run, params in ASKS:
                answer = session.view(slug, run, params=params, wait=True)
                if answer.payload is None:
                    raise RuntimeError(f"{slug}: {answer.state}")
                payloads.setdefault(slug.split("/")[0], {})[slug] = msgspec.Raw(answer.payload)
    for view, parts in payloads.items():
        yield f"{view}.json", msgspec.json.format(msgspec.json.encode(parts), indent=1).decode() + "\n"


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, text in goldens():
        (GOLDEN / name).write_text(text, encoding="utf-8")
