"""Tests that reasons name only options of the profiler that wrote the trace."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import get_args

import pytest
from msgspec.structs import replace

from tests.support.producers import aorta, ascend, composer, gaudi
from tests.support.producers.pftrace import rocprof_pftrace
from tests.support.producers.rocprof import RocprofRun, draw_training, rocprof_json
from tests.support.traces import draw, read_bytes
from tests.support.views import ask
from torch_tb_profiler.model.trace import AORTA, COMPOSER, PYTORCH, ROCPROF, Trace
from torch_tb_profiler.model.vendors.recording_options import RecordingTopic, recording_option
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views import all_tabs

OPTION = re.compile(
    r"torch_prof_\w*|rocprofv3 --[\w-]+|roctx|ProfilerActivity(?:\.\w+)?|profile_memory|record_shapes|with_stack"
    r"|with_modules|prof(?:iler)?\.step"
)
PYTORCH_OPTIONS = {
    "profile_memory",
    "record_shapes",
    "with_stack",
    "with_modules",
    "prof.step",
    "ProfilerActivity.CPU",
}
CUDA_OPTIONS = {"ProfilerActivity.CUDA"}
ROCPROF_OPTIONS = {"rocprofv3 --hip-trace", "rocprofv3 --kernel-trace", "rocprofv3 --memory-copy-trace", "roctx"}

HOST = "host cpu_op aten::mm 0 10\nhost cuda_runtime cudaLaunchKernel 12 3"
KERNEL = "gpu0 kernel gemm 0 10 stream=7"


def _of(producer: str, *lines: str) -> Callable[[], Trace]:
    return lambda: replace(draw("\n".join(lines)), producer=producer)


def _gaudi(*, plugin: bool) -> Callable[[], Trace]:
    return lambda: read_bytes(gaudi.content(plugin=plugin))


def _host_of_rocprof() -> Trace:
    return read_bytes(rocprof_json(RocprofRun(calls=draw_training(1).calls[1:3])))


def _ascend() -> Trace:
    return read_bytes(json.dumps(ascend.events()).encode())


def _aorta() -> Trace:
    lines = [aorta.line(step, aorta.iteration(step), 100) for step in range(2)]
    return read_bytes("\n".join(map(json.dumps, lines)).encode())


TRACES: dict[str, tuple[Callable[[], Trace], set[str]]] = {
    "PyTorch, host": (_of(PYTORCH, HOST), PYTORCH_OPTIONS | CUDA_OPTIONS),
    "PyTorch, device": (_of(PYTORCH, KERNEL), PYTORCH_OPTIONS | CUDA_OPTIONS),
    "XPU": (_of(PYTORCH, "host xpu_runtime urEnqueueKernelLaunch 0 5", KERNEL), PYTORCH_OPTIONS | CUDA_OPTIONS),
    "MTIA": (_of(PYTORCH, "gpu0 mtia_ccp_events dma_request 0 5"), PYTORCH_OPTIONS | CUDA_OPTIONS),
    "Gaudi": (_gaudi(plugin=False), PYTORCH_OPTIONS | {"ProfilerActivity.HPU"}),
    "Gaudi, plugin": (_gaudi(plugin=True), PYTORCH_OPTIONS | {"ProfilerActivity.HPU"}),
    "Ascend": (_ascend, PYTORCH_OPTIONS - {"profile_memory"} | {"ProfilerActivity.NPU"}),
    "Composer": (lambda: read_bytes(composer.content(composer.cycle([composer.Batch()]))), set()),
    "Composer, host": (_of(COMPOSER, HOST), set()),
    "Composer, device": (_of(COMPOSER, KERNEL), set()),
    "rocprofv3": (lambda: read_bytes(rocprof_json(draw_training(1))), ROCPROF_OPTIONS),
    "rocprofv3, .pftrace": (lambda: read_bytes(rocprof_pftrace(draw_training(1))), ROCPROF_OPTIONS),
    "rocprofv3, no work": (_host_of_rocprof, ROCPROF_OPTIONS),
    "AORTA": (_aorta, set()),
    "nvidia-smi": (
        lambda: read_bytes(b"timestamp, index, power.draw [W]\r\n2024/05/01 10:00:00.000, 0, 300 W\r\n"),
        set(),
    ),
}
COMPOSER_OPTION = re.compile(r"torch_prof_(?:record_shapes|with_stack|profile_memory)?$")


def all_texts(trace: Trace) -> str:
    """Return all texts of the tabs and their answers."""
    texts = []
    for tab in all_tabs():
        reason = tab.reason(trace)
        texts.append(f"{tab.slug}: {reason}")
        if reason is None and isinstance(tab.view, TraceView):
            texts.append(json.dumps(ask(trace, tab.slug)))
    if trace.clock in ("epoch", "boot"):
        for slug, params in (("operators", {"group_by": "module"}), ("trace/event", {"event": 0}),
                             ("trace/module", {"event": 0})):  # fmt: skip
            texts.append(json.dumps(ask(trace, slug, **params)))
    return "\n".join(texts)


@pytest.mark.parametrize("name", TRACES)
def test_no_reason_names_an_option_that_the_profiler_lacks(name: str) -> None:
    make, known = TRACES[name]
    trace = make()
    named = set(OPTION.findall(all_texts(trace)))
    if trace.producer == COMPOSER:
        assert all(COMPOSER_OPTION.match(each) for each in named), named
        named = {each for each in named if not COMPOSER_OPTION.match(each)}
    assert named <= known, named - known


@pytest.mark.parametrize("producer", [PYTORCH, COMPOSER, ROCPROF, AORTA, "nvidia-smi"])
def test_every_topic_has_a_clause_in_the_terms_of_its_producer(producer: str) -> None:
    trace = replace(draw(HOST), producer=producer)
    for topic in get_args(RecordingTopic):
        clause = recording_option(trace, topic)
        assert bool(OPTION.search(clause)) == (
            producer == PYTORCH
            or (producer == COMPOSER and topic != "steps")
            or (producer == ROCPROF and topic in ("host", "runtime", "device", "kernels", "copies", "steps"))
        ), (topic, clause)


def test_the_option_for_memory_is_that_of_the_profiler() -> None:
    options = {name: recording_option(make(), "memory") for name, (make, _) in TRACES.items()}
    assert options["PyTorch, host"] == options["Gaudi"] == "`profile(profile_memory=True)`"
    assert options["Composer"] == "`Profiler(torch_prof_profile_memory=True)`"
    assert options["Ascend"].startswith("Ascend's profiler keeps memory out of the trace")
    assert "rocprofv3 records calls of the driver" in options["rocprofv3"]
    assert options["AORTA"] == "AORTA records busy times of streams, and nothing else"
    assert options["nvidia-smi"] == "nvidia-smi records samples, and nothing else"
