"""One label of each form, as its engine writes it."""

from __future__ import annotations

import pytest

from torch_tb_profiler.model.serving.labels import IterationLabel, host_work_of, is_unknown_label, parse_label

FORMS = {
    "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)": (
        IterationLabel("vLLM", "mixed", 46, 9, 8155, 37, 37, 37, 42919)
    ),
    "execute_context_0(0)_generation_20(20)": IterationLabel("vLLM", "decode", 20, 0, 0, 20, 20),
    "execute_new_2_cached_7": IterationLabel("vLLM", None, 9),
    "execute_new_0_cached_0": IterationLabel("vLLM", "idle", 0),
    "step[DECODE bs=32]": IterationLabel("SGLang", "decode", 32, 0, 0, 32, 32),
    "step[DECODE bs=2 g_sq=2 g_sqsq=2 g_sqsk=90 g_sk=90]": (
        IterationLabel("SGLang", "decode", 2, 0, 0, 2, 2, 2, 90)
    ),
    "step[EXTEND bs=2 toks=107]": IterationLabel("SGLang", "prefill", 2, 2, 107, 0, 0),
    "step[EXTEND bs=2 toks=107 c_sq=107 c_sk=120]": IterationLabel(
        "SGLang", "prefill", 2, 2, 107, 0, 0, None, 120
    ),
    "step[MIXED bs=5]": IterationLabel("SGLang", "mixed", 5),
    "step[MIXED bs=5 c=1 g=4 c_sq=64 c_sk=64 g_sq=4 g_sk=400]": (
        IterationLabel("SGLang", "mixed", 5, 1, 64, 4, 4, None, 464)
    ),
    "step[decode bs=8]": IterationLabel("SGLang", "decode", 8, 0, 0, 8, 8),
    "step[prefill bs=2 toks=107]": IterationLabel("SGLang", "prefill", 2, 2, 107, 0, 0),
    "step[mixed bs=5 ext=64 dec=4]": IterationLabel("SGLang", "mixed", 5, 1, 64, 4, 4),
    "step[idle]": IterationLabel("SGLang", "idle", 0),
    "step[TARGET_VERIFY bs=4 c_sq=16]": IterationLabel("SGLang", "decode", 4, 0, 0, 4, 16, part="verify"),
    "step[DRAFT_EXTEND_V2 bs=4]": IterationLabel("SGLang", "decode", 4, 0, 0, 4, None, part="draft"),
    "prefill[bs=2 tok=2048 ctx=[1024, 1024]...+3 sqsq=9 sqsk=9 sk=2048]": (
        IterationLabel("ATOM", "prefill", 2, 2, 2048, 0, 0, None, 2048)
    ),
    "decode[bs=117/128 tok=117 d=117 sqsq=117 sqsk=90112 sk=90112]": (
        IterationLabel("ATOM", "decode", 117, 0, 0, 117, 117, 117, 90112, 128)
    ),
    "decode[bs=20/32 tok=90 p=2 d=18]": IterationLabel("ATOM", "mixed", 20, 2, None, 18, None, None, None, 32),
    "decode[bs=32 tok=128 d=32 spec=3]": IterationLabel("ATOM", "decode", 32, 0, 0, 32, 128),
    "decode[bs=128 tok=384 p=2 d=126 sqsq=9 sqsk=9 sk=258048 tbo=1]": (
        IterationLabel("ATOM", "mixed", 128, 2, None, 126, None, None, 258048)
    ),
    "eager_decode[bs=32 tok=32 d=32]": IterationLabel("ATOM", "decode", 32, 0, 0, 32, 32),
    "prefill[bs=2 tok=14721 ctx=[7803, 6918]]": IterationLabel("ATOM", "prefill", 2, 2, 14721, 0, 0),
    "[Executor] _forward_step: 2 ctx reqs, 3 gen reqs": IterationLabel("TensorRT-LLM", "mixed", 5, 2, None, 3, 3),
    "[Executor] _forward_step 7: 1 ctx reqs, 300 ctx tokens, 4 gen reqs": (
        IterationLabel("TensorRT-LLM", "mixed", 5, 1, 300, 4, 4)
    ),
    "[Executor] _forward_step 7: 0 ctx reqs, 4 gen reqs": IterationLabel("TensorRT-LLM", "decode", 4, 0, 0, 4, 4),
    "forward_cudagraph": IterationLabel("LMDeploy", None),
    "forward_eager": IterationLabel("LMDeploy", None),
    "step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]": (
        IterationLabel("SGLang", "decode", 64, 0, 0, 64, 128, 256, 131072)
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_label_says_what_its_form_counts(name: str) -> None:
    assert parse_label(name) == FORMS[name]


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("execute_diffusion_1_256x256", False),
        ("capture_32_DECODE", False),
        ("ProfilerStep#3", False),
        ("execute_model", False),
        ("execute_context_0(0)_generation_20(20)_more", True),
        ("step[WARP bs=3]", True),
        ("decode[tokens=3]", True),
        ("[Executor] _forward_step 7: 4 reqs", True),
        ("execute_12_context_(sq)", True),
        ("execute_context_" + "9" * 600, True),
    ],
)
def test_what_is_no_label_is_none_and_a_new_form_is_noticed(name: str, unknown: bool) -> None:
    assert parse_label(name) is None
    assert is_unknown_label(name) is unknown


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("schedule: allocate_slots", "scheduler"),
        ("scheduler.get_next_batch_to_run", "scheduler"),
        ("scheduler.run_batch", None),
        ("scheduler.process_batch_result_decode", "sampling_sync"),
        ("gpu_model_runner: sample", "sampling_sync"),
        ("gpu_model_runner: forward", None),
        ("cudaStreamSynchronize", "sampling_sync"),
        ("kv_connector: wait_for_layer_load", "network"),
        ("c10d::broadcast_", "network"),
        ("c10d::allreduce_", None),
        ("aten::mm", None),
    ],
)
def test_host_work_by_its_name(name: str, work: str | None) -> None:
    assert host_work_of(name) == work
