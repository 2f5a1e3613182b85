"""The annotations that inference engines put around an iteration, and what they count.

    execute_context_2(1024)_generation_20(20)      vLLM: 2 prompts with 1,024 tokens, 20 requests that decode
    step[DECODE bs=32]                             SGLang: 32 requests that decode
    decode[bs=117/128 tok=117 d=117 sk=90112]      ATOM: 117 requests padded to 128, 90,112 KV tokens

Sources: vLLM `v1/worker/gpu_worker.py` (pull requests 22496, 31193, 37524); SGLang `model_runner.py` and
`step_span_utils.py` (23419, 24911, 38630); ATOM 0.1.3; TensorRT-LLM `py_executor.py`; LMDeploy `lmdeploy/pytorch`.

`sq` sums the query tokens of all requests, `sk` their KV lengths, `sqsq` and `sqsk` the products.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import msgspec

from torch_tb_profiler.base.patterns import lazy_regex

Phase = Literal["prefill", "decode", "mixed", "idle"]

PHASES: tuple[Phase, ...] = ("prefill", "decode", "mixed", "idle")

MAX_LABEL_LENGTH = 512
"""Characters of a name that may be a label; longer names are something else."""


class IterationLabel(msgspec.Struct, frozen=True):
    """What a label says of its iteration; None where this form doesn't say.

    engine             as people call it
    phase              None where the form doesn't tell prompts from decodes
    requests           requests in the batch
    context_requests   those whose prompt is read
    prompt_tokens      of these requests
    decode_requests    requests that generate
    decode_tokens      tokens of these requests that go through the model: one each, more with drafts
    decode_squares     sum of their squares (`sqsq`), which tells a recomputed prompt from drafts
    kv_tokens          sum of the KV lengths of all requests
    padded_requests    what the batch was padded to
    part               what part of an iteration this is: "draft" or "verify" of speculative decoding
    """

    engine: str
    phase: Phase | None
    requests: int | None = None
    context_requests: int | None = None
    prompt_tokens: int | None = None
    decode_requests: int | None = None
    decode_tokens: int | None = None
    decode_squares: int | None = None
    kv_tokens: int | None = None
    padded_requests: int | None = None
    part: Literal["draft", "verify"] | None = None


_N = r"(\d{1,12})"
_SUMS = rf"sq{_N}sk{_N}sqsq(\d{{1,18}})sqsk(\d{{1,18}})"
_FIELD = lazy_regex(r"(\w{1,16})=(\[[^\]]*\]\S*|\S+)")


def _phase(context: int | None, decode: int | None) -> Phase:
    return "mixed" if context and decode else "prefill" if context else "decode" if decode else "idle"


def _parse_vllm_sums(match: re.Match[str]) -> IterationLabel:
    _, requests, tokens, kv, _, _, decodes, decode_tokens, decode_kv, squares, _ = map(int, match.groups())
    return IterationLabel(
        "vLLM",
        _phase(requests, decodes),
        requests=requests + decodes,
        context_requests=requests,
        prompt_tokens=tokens,
        decode_requests=decodes,
        decode_tokens=decode_tokens,
        decode_squares=squares,
        kv_tokens=kv + decode_kv,
    )


def _parse_vllm(match: re.Match[str]) -> IterationLabel:
    requests, tokens, decodes, decode_tokens = map(int, match.groups())
    return IterationLabel(
        "vLLM",
        _phase(requests, decodes),
        requests=requests + decodes,
        context_requests=requests,
        prompt_tokens=tokens,
        decode_requests=decodes,
        decode_tokens=decode_tokens,
    )


def _vllm_requests(match: re.Match[str]) -> IterationLabel:
    """Read the form without tokens, whose cached requests are decodes and prompts that continue."""
    requests = sum(map(int, match.groups()))
    return IterationLabel("vLLM", None if requests else "idle", requests=requests)


def _parse_sglang(match: re.Match[str]) -> IterationLabel | None:
    fields = {key: int(value) for key, value in _FIELD.findall(match[2]) if value.isdecimal()}
    mode, requests, get = match[1].upper(), fields.get("bs"), fields.get
    sums = [fields[key] for key in ("c_sk", "g_sk") if key in fields]
    kv = sum(sums) if sums else None
    if mode == "IDLE":
        return IterationLabel("SGLang", "idle", requests=0)
    if mode == "DECODE":
        tokens = get("g_sq", requests)
        return IterationLabel(
            "SGLang",
            "decode",
            requests=requests,
            context_requests=0,
            prompt_tokens=0,
            decode_requests=requests,
            decode_tokens=tokens,
            decode_squares=get("g_sqsq"),
            kv_tokens=kv,
        )
    if mode in ("EXTEND", "PREFILL", "SPLIT_PREFILL", "DLLM_EXTEND"):
        return IterationLabel(
            "SGLang",
            "prefill",
            requests=requests,
            context_requests=requests,
            prompt_tokens=get("c_sq", get("toks")),
            decode_requests=0,
            decode_tokens=0,
            kv_tokens=kv,
        )
    if mode == "MIXED":
        decodes = get("g", get("dec"))
        return IterationLabel(
            "SGLang",
            "mixed",
            requests=requests,
            context_requests=get("c", None if requests is None or decodes is None else requests - decodes),
            prompt_tokens=get("c_sq", get("ext")),
            decode_requests=decodes,
            decode_tokens=get("g_sq", decodes),
            decode_squares=get("g_sqsq"),
            kv_tokens=kv,
        )
    if mode in ("VERIFY", "TARGET_VERIFY", "DRAFT", "DRAFT_EXTEND", "DRAFT_EXTEND_V2"):
        return IterationLabel(
            "SGLang",
            "decode",
            requests=requests,
            context_requests=0,
            prompt_tokens=0,
            decode_requests=requests,
            decode_tokens=get("c_sq", get("g_sq")),
            kv_tokens=kv,
            part="verify" if "VERIFY" in mode else "draft",
        )
    return None


def _parse_atom(match: re.Match[str]) -> IterationLabel:
    fields = dict(_FIELD.findall(match[2]))

    def number(key: str) -> int | None:
        digits = re.match(r"\d{1,12}", fields.get(key, ""))
        return int(digits[0]) if digits else None

    requests, tokens, kv = number("bs"), number("tok"), number("sk")
    if match[1] == "prefill":
        return IterationLabel(
            "ATOM",
            "prefill",
            requests=requests,
            context_requests=requests,
            prompt_tokens=tokens,
            decode_requests=0,
            decode_tokens=0,
            kv_tokens=kv,
        )
    prompts, decodes = number("p") or 0, number("d")
    padded = re.search(r"/(\d{1,12})$", fields.get("bs", ""))
    return IterationLabel(
        "ATOM",
        "mixed" if prompts else "decode",
        requests=requests,
        context_requests=prompts,
        prompt_tokens=None if prompts else 0,
        decode_requests=requests if decodes is None else decodes,
        decode_tokens=None if prompts else tokens,
        decode_squares=None if prompts else number("sqsq"),
        kv_tokens=kv,
        padded_requests=int(padded[1]) if padded else None,
    )


def _parse_tensorrt_llm(match: re.Match[str]) -> IterationLabel:
    requests, decodes = int(match[1]), int(match[3])
    return IterationLabel(
        "TensorRT-LLM",
        _phase(requests, decodes),
        requests=requests + decodes,
        context_requests=requests,
        prompt_tokens=int(match[2]) if match[2] else None if requests else 0,
        decode_requests=decodes,
        decode_tokens=decodes,
    )


def _lmdeploy(match: re.Match[str]) -> IterationLabel:
    return IterationLabel("LMDeploy", None)


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], IterationLabel | None]], ...] = (
    (lazy_regex(rf"execute_{_N}_context_{_N}\({_SUMS}\)_generation_{_N}\({_SUMS}\)"), _parse_vllm_sums),
    (lazy_regex(rf"execute_context_{_N}\({_N}\)_generation_{_N}\({_N}\)"), _parse_vllm),
    (lazy_regex(rf"execute_new_{_N}_cached_{_N}"), _vllm_requests),
    (lazy_regex(r"step\[(\w{1,32})([^\]]*)\]"), _parse_sglang),
    (lazy_regex(r"(?:eager_)?(prefill|decode)\[(bs=.*)\]"), _parse_atom),
    (
        lazy_regex(
            rf"\[Executor\] _forward_step(?: \d{{1,12}})?: {_N} ctx reqs,(?: {_N} ctx tokens,)? {_N} gen reqs"
        ),
        _parse_tensorrt_llm,
    ),
    (lazy_regex(r"forward_(?:cudagraph|eager)"), _lmdeploy),
)

_BEGINNINGS = ("execute_", "step[", "eager_", "prefill[", "decode[", "[Executor] ", "forward_")
"""What labels begin with; for other names, most of them, no expression is compiled."""

_LABEL_LIKE = lazy_regex(
    r"execute_(?:\d|context|new|cached|gen)|step\[|(?:eager_)?(?:prefill|decode)\[|"
    r"\[Executor\] _forward_step"
)
_NO_ITERATION = lazy_regex(r"execute_diffusion_")


def parse_label(name: str) -> IterationLabel | None:
    """Return what an annotation says of its iteration, or None if it labels none."""
    if len(name) > MAX_LABEL_LENGTH or not name.startswith(_BEGINNINGS):
        return None
    for pattern, read in _FORMS:
        if match := pattern.fullmatch(name):
            return read(match)
    return None


def is_unknown_label(name: str) -> bool:
    """Return whether a name reads like the label of an iteration but has no known form."""
    if (
        not name.startswith(_BEGINNINGS)
        or _LABEL_LIKE.match(name) is None
        or _NO_ITERATION.match(name) is not None
    ):
        return False
    return parse_label(name) is None


_HOST_WORK: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "network",
        lazy_regex(
            r"kv_connector|wait_for_layer_load|wait_for_save|kv_transfer|recv_kv|poll_kv|gloo:|"
            r"c10d::(?:recv|broadcast|barrier)|shm_broadcast|recv_tensor_dict|broadcast_pyobj",
            re.IGNORECASE,
        ),
    ),
    (
        "sampling_sync",
        lazy_regex(
            r"gpu_model_runner: (?:sample|bookkeep|modelrunneroutput|set_async)|sampling|process_batch_result|"
            r"logits_process|grammar|detokeniz|outputs_d2h|_local_scalar_dense|aten::item$|aten::multinomial|"
            r"(?:stream|event|device)synchronize",
            re.IGNORECASE,
        ),
    ),
    (
        "scheduler",
        lazy_regex(
            r"^schedule[:_ ]|get_next_batch|get_new_batch|update_running_batch|recv_requests|"
            r"process_input_requests|"
            r"prefix_match|^scheduler\.(?!run_batch|process_batch|event_loop)|update_from_output|"
            r"/sched/scheduler\.py\(\d+\): schedule$",
            re.IGNORECASE,
        ),
    ),
    ("idle", lazy_regex(r"self_check_during_idle|scheduler\.on_idle|wait_for_request|^idle$", re.IGNORECASE)),
)


def host_work_of(name: str) -> str | None:
    """Return what host work of an engine is for: network, sampling_sync, scheduler or idle; None if unnamed."""
    if len(name) > MAX_LABEL_LENGTH:
        return None
    return next((work for work, pattern in _HOST_WORK if pattern.search(name)), None)
