"""What each line of a server's log tells, in which zone its clock is, and that prompts tell nothing."""

from __future__ import annotations

import io

import pytest

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.engine_log.read import EngineLog, read_engine_log
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.serving.requests import QueueSample, RequestRecord

BEGIN = 1_795_676_400 * 10**9
"""2026-11-26 07:00:00 UTC, which a server two hours ahead calls 09:00:00."""

SECOND, MS = 10**9, 10**6
VLLM, SGLANG = "INFO 11-26 09:00:{} [loggers.py:259] ", "[2026-11-26 09:00:{}] "
VLLM_STARTS = VLLM.format("00") + "Starting profiler...\n"
SGLANG_STARTS = SGLANG.format("00") + "Profiling starts. Traces will be saved to: /tmp (with profile id: 1)\n"
THROUGHPUT = (
    "Avg prompt throughput: 98.0 tokens/s, Avg generation throughput: 19.4 tokens/s, Running: 4 reqs, "
    "{}: 3 reqs, GPU KV cache usage: 64.6%, Prefix cache hit rate: 24.0%"
)
V1, V0 = THROUGHPUT.format("Waiting"), THROUGHPUT.format("Swapped: 0 reqs, Pending")


def read(text: str, near_ns: int = BEGIN) -> EngineLog | None:
    data = text.encode()
    return read_engine_log(io.BytesIO(data), size=len(data), health=HealthLog(), near_ns=near_ns)


def known(text: str) -> EngineLog:
    log = read(text)
    assert log is not None
    return log


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        (VLLM.format("01") + "Engine 001: " + V1, ("001", 4, 3, 0.646)),
        ("(APIServer pid=9) " + VLLM.format("01") + V1, ("", 4, 3, 0.646)),
        (
            "\x1b[1;36m(APIServer pid=9)\x1b[0;0m " + VLLM.format("01") + V1,
            ("", 4, 3, 0.646),
        ),
        (VLLM.format("01") + "2 Engines Aggregated: " + V1, ("", 4, 3, 0.646)),
        (
            "(EngineCore_DP1 pid=1205) " + VLLM.format("01") + "Iteration(15): 2 context requests, 7986 context "
            "tokens, 14 generation requests, 14 generation tokens, iteration elapsed time: 1115.64 ms",
            ("001", 16, None, None),
        ),
        (
            "(SGLangEngine pid=37, ip=10.0.0.1) " + SGLANG.format("01") + "Decode batch, #running-req: 4, "
            "#token: 512, token usage: 0.71, #queue-req: 3",
            ("", 4, 3, 0.71),
        ),
        (
            "INFO 11-26 09:00:01 metrics.py:481] " + V0,
            ("", 4, 3, 0.646),
        ),
        (
            VLLM.format("01") + "Iteration(515): 1 context requests, 64 context tokens, 20 generation requests, "
            "20 generation tokens, iteration elapsed time: 10.99 ms, GPU KV cache usage: 12.5%",
            ("", 21, None, 0.125),
        ),
        (
            SGLANG.format("01") + "Decode batch. #running-req: 4, #token: 512, token usage: 0.71, "
            "cuda graph: True, gen throughput (token/s): 2520.18, #queue-req: 3",
            ("", 4, 3, 0.71),
        ),
        (
            "[2026-11-26 09:00:01 DP1 TP4 EP4] Decode batch [124], #running-req: 4, #full token: 512, "
            "full token usage: 0.71, #queue-req: 3",
            ("DP1", 4, 3, 0.71),
        ),
        (
            "[2026-11-26 09:00:01 TP0] Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0, "
            "token usage: 0.00, #running-req: 0, #queue-req: 0, ",
            ("", 0, 0, 0.0),
        ),
    ],
)
def test_a_periodic_line_counts_the_queue(line: str, sample: tuple[str, int, int | None, float | None]) -> None:
    log = known((SGLANG_STARTS if " batch" in line else VLLM_STARTS) + line)
    (found,) = log.samples
    assert found == QueueSample(BEGIN + SECOND, *sample[:3], found.kv_share)
    assert found.kv_share == (None if sample[3] is None else pytest.approx(sample[3]))
    assert not log.requests


def test_sglang_tells_queue_and_first_token_of_each_request() -> None:
    """`--enable-request-time-stats-logging`: the time of its arrival is exact, and tells the zone."""
    line = (
        "[2026-11-26 09:00:02] ReqTimeStats(rid=7f, input_len=38, cached_input_len=0, output_len=9, attempts=0, "
        "type=unified): queue_duration=0.98ms, initial_prefill_elapsed=12.10ms, post_prefill_elapsed=53.90ms, "
        "forward_duration=66.00ms, entry_time=1795676401.934"
    )
    arrival = BEGIN + 1934 * MS
    assert known(line).requests == [
        RequestRecord("7f", arrival, arrival + 66_980_000, 980_000, 13_080_000, None, 38, 9)
    ]


def test_the_older_form_is_placed_by_the_time_of_its_line() -> None:
    """Its start_time isn't since the epoch."""
    line = (
        "[2026-11-26 09:00:02 TP0] Req Time Stats(rid=7f, input len=38, output len=9, type=unified): "
        "queue_duration=500.00ms, forward_duration=1000.00ms, start_time=512.123"
    )
    arrival = BEGIN + 500 * MS
    (request,) = known(SGLANG_STARTS + line).requests
    assert (request.arrival_ns, request.end_ns, request.queue_ns) == (arrival, BEGIN + 2 * SECOND, 500 * MS)
    assert request.first_token_ns is None and request.arrival_precision_ns == SECOND
    broken = line.replace("1000.00ms", "1759654443392.38ms")
    assert known(SGLANG_STARTS + line.replace("7f", "8f") + "\n" + broken).requests[0].name == "8f"


@pytest.mark.parametrize(
    ("kind", "durations", "seconds"),
    [
        ("prefill", "bootstrap_duration=500.00ms, queue_duration=250.00ms, forward_duration=1000.00ms", 1.75),
        (
            "decode",
            "bootstrap_duration=100.00ms, alloc_wait_duration=150.00ms, transfer_duration=250.00ms, "
            "queue_duration=250.00ms, forward_duration=1000.00ms",
            1.75,
        ),
        (
            "decode",
            "prealloc_queue_duration(250.00ms) = alloc_wait(150.00ms) + bootstrap(100.00ms) + other(0.00ms); "
            "transfer_duration=250.00ms; queue_duration=250.00ms, forward_duration=1000.00ms",
            1.75,
        ),
    ],
)
def test_a_request_of_a_split_server_lasts_through_the_transfer(kind: str, durations: str, seconds: float) -> None:
    """Prefill and decode on different servers: each logs its own part, which ends when the line is written."""
    line = (
        "[2026-11-26 09:00:04.000 DP0 TP0] ReqTimeStats(rid=7f, bootstrap_room=4, input_len=38, "
        f"cached_input_len=0, output_len=9, attempts=0, type={kind}): {durations}"
    )
    (request,) = known(SGLANG_STARTS + line).requests
    assert request.end_ns == BEGIN + 4 * SECOND
    assert request.end_ns - request.arrival_ns == seconds * SECOND
    assert request.queue_ns == 250 * MS and request.first_token_ns is None


FINISHED = (
    "{{'text': ' says \\'meta_info\\': {{\\'e2e_latency\\': 9.0}}', 'meta_info': {{'id': '7f', "
    "'finish_reason': {{'type': 'length', 'length': 9}}, 'prompt_tokens': 38, 'completion_tokens': 9, "
    "'e2e_latency': 0.5, 'queue_time': 0.02{}}}}}"
)


def test_sglang_tells_when_requests_are_received_and_finished() -> None:
    """`--log-requests`: in whole seconds, or exactly where the answer's times are logged."""
    lines = SGLANG_STARTS + SGLANG.format("01") + "Receive: obj=GenerateReqInput(rid='7f', text='rid=\\'8f\\'')\n"
    lines += SGLANG.format("02") + "Finish: obj=GenerateReqInput(rid='7f'), out=" + FINISHED.format("")
    arrival = BEGIN + SECOND
    (request,) = known(lines).requests
    assert request == RequestRecord(
        "7f", arrival, arrival + 500 * MS, 20 * MS, None, None, 38, 9, arrival_precision_ns=SECOND
    )
    times = ", 'request_received_ts': 1795676401.25, 'prefill_finished_ts': 1795676401.375"
    exact = SGLANG.format("01") + "Finish: obj=GenerateReqInput(rid='7f'), out=" + FINISHED.format(times)
    arrival = BEGIN + 1250 * MS
    assert known(exact).requests == [
        RequestRecord("7f", arrival, arrival + 500 * MS, 20 * MS, 125 * MS, None, 38, 9)
    ]


def test_sglang_in_json() -> None:
    line = (
        '{"timestamp": "2026-11-26T09:00:01.750000", "event": "request.finished", "rid": "7f", "obj": {}, "out": '
        '{"meta_info": {"prompt_tokens": 38, "completion_tokens": 9, "e2e_latency": 0.5, "queue_time": 0.02, '
        '"request_received_ts": 1795676401.25}}}'
    )
    (request,) = known(line).requests
    assert (request.arrival_ns, request.end_ns) == (BEGIN + 1250 * MS, BEGIN + 1750 * MS)
    assert (request.queue_ns, request.prompt_tokens, request.output_tokens) == (20 * MS, 38, 9)


def test_vllm_tells_arrivals_and_ends() -> None:
    """`--enable-log-requests --enable-log-outputs`; a request that is received is also added."""
    lines = VLLM_STARTS + VLLM.format("01") + "Received request cmpl-7: params: SamplingParams(n=1).\n"
    lines += VLLM.format("01") + "Added request cmpl-7-a1b2c3d4.\n"
    lines += (
        VLLM.format("03") + "Generated response cmpl-7 (streaming complete): output: ' x', finish_reason: stop"
    )
    assert known(lines).requests == [
        RequestRecord("cmpl-7", BEGIN + SECOND, BEGIN + 3 * SECOND, arrival_precision_ns=SECOND)
    ]
    only_added = VLLM_STARTS + "INFO 11-26 09:00:01 engine.py:289] Added request chatcmpl-8."
    assert [each.name for each in known(only_added).requests] == ["chatcmpl-8"]


@pytest.mark.parametrize(
    "end", ["Finished request {}.", "Request {} aborted.", "Request {} failed (bad request)."]
)
def test_vllm_tells_ends_without_the_answers(end: str) -> None:
    lines = VLLM_STARTS + VLLM.format("01") + "Received request cmpl-7: params: SamplingParams(n=1).\n"
    (request,) = known(lines + VLLM.format("03") + end.format("cmpl-7")).requests
    assert request.end_ns == BEGIN + 3 * SECOND
    (other,) = known(lines + VLLM.format("03") + end.format("cmpl-8")).requests
    assert other.end_ns is None


@pytest.mark.parametrize("stage", ["EXTEND", "DECODE", "prefill"])
def test_a_profiler_that_records_a_stage_tells_the_zone(stage: str) -> None:
    starts = SGLANG.format("00") + f"Profiling starts for {stage}. Traces will be saved to: /tmp\n"
    line = SGLANG.format("01") + "Decode batch, #running-req: 4, #queue-req: 3"
    assert known(starts + line).samples[0].time_ns == BEGIN + SECOND
    with pytest.raises(TraceError, match="no time zone"):  # CUDA graphs are captured long before
        read(starts.replace(stage, "graph capture for NPU") + line)


def test_collected_logs_have_exact_times_and_first_tokens() -> None:
    """`docker logs --timestamps`; `--enable-log-deltas` logs each piece of an answer."""
    lines = "".join(
        f"2026-11-26T07:00:01.{fraction}Z INFO 11-26 09:00:01 [logger.py:43] {message}\n"
        for fraction, message in (
            ("250000000", "Received request cmpl-7: params: SamplingParams(n=1)."),
            ("500000000", "Generated response cmpl-7 (streaming delta): output: ' a'"),
            ("625000000", "Generated response cmpl-7 (streaming delta): output: ' b'"),
            ("750000000", "Generated response cmpl-7 (streaming complete): output: ' ab'"),
        )
    )
    (request,) = known(lines).requests
    assert (request.arrival_ns, request.end_ns) == (BEGIN + 1250 * MS, BEGIN + 1750 * MS)
    assert request.first_token_ns == 250 * MS


def test_a_line_without_a_year_is_of_the_one_nearest_to_the_trace() -> None:
    near = 1_798_761_595 * 10**9  # 2026-12-31 23:59:55
    log = read(
        "INFO 12-31 23:59:55 [a.py:1] Starting profiler...\nINFO 01-01 00:00:05 [a.py:1] Added request 7.", near
    )
    assert log is not None and log.requests[0].arrival_ns == near + 10 * SECOND


def test_a_prompt_tells_nothing() -> None:
    inside = (
        SGLANG.format("01") + "ReqTimeStats(rid=evil, input_len=1, output_len=1, type=unified): queue_duration=1ms"
    )
    lines = SGLANG_STARTS + SGLANG.format("01") + f"Receive: obj=GenerateReqInput(rid='7f', text={inside!r})\n"
    lines += VLLM.format("01") + f"Received request 8: prompt: {THROUGHPUT.format('Waiting')!r}, params: x"
    log = known(lines)
    assert {each.name for each in log.requests} == {"7f", "8"} and not log.samples


def test_without_a_zone_nothing_is_placed() -> None:
    with pytest.raises(TraceError, match="no line near the trace says that the profiler started"):
        read(VLLM.format("01") + V1)
    late = VLLM_STARTS.replace("09:00:00", "09:05:00") + VLLM.format("01") + V1
    with pytest.raises(TraceError, match="no time zone"):  # five minutes are no zone: another recording's line
        read(late)


def test_other_logs_are_left_alone() -> None:
    assert read("[2026-11-26 09:00:01] INFO: Application startup complete.\nepoch 3 loss 0.1\n\xff{") is None
