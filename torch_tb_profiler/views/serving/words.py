"""The sentences of the Serving tab."""

from __future__ import annotations

from torch_tb_profiler.analyses.serving.advice import CHUNK_STEP, ServingAdvice
from torch_tb_profiler.analyses.serving.idle import WAITING
from torch_tb_profiler.base.format import format_duration, format_number, format_ratio
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.views._shared.serving import ServingFacts
from torch_tb_profiler.views._shared.text import Text, sentences, text
from torch_tb_profiler.views.serving.payload import AdviceRow

DRAFTS = "with speculative decoding the labels count requests or drafts, not the accepted tokens"

_PHASE_TEXTS = {"prefill": "prefill only", "decode": "decode only", "mixed": "mixed", None: "of unknown phase"}

_WINDOWS = {
    "ramp_up": "The batch is still growing, so these aren't steady-state rates.",
    "draining": "The batch is shrinking, so these aren't steady-state rates.",
    "steady": "The batch size is steady.",
}


_RECORD_REQUESTS = {
    "vLLM": "start vLLM with `--otlp-traces-endpoint`, and put the spans beside the trace as `otlp.jsonl`",
    "SGLang": "start SGLang with `--enable-request-time-stats-logging`, and put its log beside the trace as "
    "`sglang.log`",
}

WHOLE_SECONDS = (
    "the log's times are whole seconds, so requests at the edges of the trace may have arrived in it or not; "
    "set `SGLANG_LOG_MS=1`, or save the log with `docker logs --timestamps`"
)


def missing_arrivals_reason(engine: str | None, recorded: bool) -> str:
    """Return why the times of requests are unknown, and what would record them."""
    how = _RECORD_REQUESTS.get(
        engine or "",
        "export the engine's request spans (OpenTelemetry), and put them beside the trace as `otlp.jsonl`",
    )
    if recorded:
        return f"the recorded requests don't say; {how}"
    return f"a trace doesn't record when requests arrive; {how}"


def missing_queue_reason(engines: int) -> str:
    """Return why the length of the queue is unknown, and what would tell it."""
    if engines > 1:
        return f"the log covers {engines} engines, and the trace doesn't say which one it belongs to"
    return (
        "a trace doesn't count requests in the queue; put the server's log beside it as `vllm.log` or `sglang.log`"
    )


def details(facts: ServingFacts) -> Text:
    """Return the evidence: iterations by phase, the window, and what is inferred or uncertain."""
    found, count = facts.found, len(facts.found)
    first = facts.phases[0]
    mean = facts.rates.requests
    batch = ""
    if mean is not None:
        average = f"{format_number(mean[0])} requests on average"
        batch = f", with {average if count > 1 else plural(round(mean[0]), 'request')}"
    return sentences(
        text("The iteration is {phase}{batch}.", phase=_PHASE_TEXTS[first.phase], batch=batch)
        if count == 1
        else text(
            "{first} of {count} {are} {phase}{batch}.",
            first=f"{first.iterations:,}",
            count=plural(count, "iteration"),
            are=agree(first.iterations, "is", "are"),
            phase=_PHASE_TEXTS[first.phase],
            batch=batch,
        ),
        text("{window}", window=_WINDOWS[facts.rates.window]) if facts.rates.window else (),
        text("The iterations are inferred from kernels: none has a label.") if found.source == "kernels" else (),
        _inferred_phases_sentence(facts),
        _other_engines_sentence(facts),
        _uncertain_waits_sentence(facts),
    )


def _inferred_phases_sentence(facts: ServingFacts) -> Text:
    count = sum(phase.inferred for phase in facts.phases)
    if count == 0 or facts.found.source == "kernels":
        return ()
    return text("The phase of {count} is inferred from kernels.", count=plural(count, "iteration"))


def _other_engines_sentence(facts: ServingFacts) -> Text:
    count = len(facts.found.other_threads)
    if count == 0:
        return ()
    return text(
        "{engines} in this process {run} iterations on {threads} of {their} own; the rest is about the one with "
        "most iterations.",
        engines=plural(count, "other engine"),
        run=agree(count, "runs", "run"),
        threads=plural(count, "thread"),
        their=agree(count, "its", "their"),
    )


def _uncertain_waits_sentence(facts: ServingFacts) -> Text:
    """Say that a wait for requests and a host that recorded nothing look alike."""
    waited = int(facts.times.idle[~facts.times.certain, WAITING].sum())
    if waited == 0:
        return ()
    return text(
        "For {time} nothing was recorded before a prefill: most likely no request waited, but slow host code in "
        "another process would look the same.",
        time=format_duration(waited),
    )


_FLAGS = {
    "overlap_host": {
        "vLLM": "Turn on asynchronous scheduling (`--async-scheduling`)",
        "SGLang": "Turn on the overlap scheduler (remove `--disable-overlap-schedule`)",
        "TensorRT-LLM": "Turn on the overlap scheduler (remove `disable_overlap_scheduler`)",
    },
    "chunk_prefill": {
        "vLLM": "Cut prefills into smaller chunks (`--max-num-batched-tokens`)",
        "SGLang": "Cut prefills into smaller chunks (`--chunked-prefill-size`, `--enable-mixed-chunk`)",
    },
    "larger_batch": {
        "vLLM": "Run more requests at once (`--max-num-seqs`)",
        "SGLang": "Run more requests at once (`--max-running-requests`)",
    },
    "more_kv_cache": {
        "vLLM": "Give the KV cache more memory (`--gpu-memory-utilization`), or run fewer requests "
        "(`--max-num-seqs`)",
        "SGLang": "Give the KV cache more memory (`--mem-fraction-static`), or run fewer requests "
        "(`--max-running-requests`)",
    },
    "cuda_graphs": {
        "vLLM": "Replay decode iterations as CUDA graphs (remove `--enforce-eager`)",
        "SGLang": "Replay decode iterations as CUDA graphs (remove `--disable-cuda-graph`)",
    },
}

_TITLES = {
    "overlap_host": "Prepare the next batch while the device works",
    "chunk_prefill": "Cut prefills into smaller chunks",
    "larger_batch": "Run more requests at once",
    "more_kv_cache": "Give the KV cache more memory, or run fewer requests",
    "cuda_graphs": "Replay decode iterations as CUDA graphs",
    "graph_sizes": "Capture graphs for more batch sizes",
    "network": "Shorten the waits for other processes",
}

_REST_TITLE = "Replay the rest of the decode iterations as CUDA graphs, too"


def advice_row(advice: ServingAdvice, facts: ServingFacts) -> AdviceRow:
    """Return advice as an imperative with its payoff."""
    title = _FLAGS.get(advice.kind, {}).get(facts.found.engine or "", _TITLES[advice.kind])
    if advice.eager is not None and advice.eager < 1:  # the engine replays graphs, so it needs no flag for them
        title = _REST_TITLE
    return AdviceRow(
        advice.kind, text("{title}", title=title), _payoff_text(advice, facts), advice.gain_ns, advice.gain_share
    )


def _payoff_text(advice: ServingAdvice, facts: ServingFacts) -> Text:
    mean = facts.mean_ns
    if advice.kind == "chunk_prefill":
        if advice.chunk is None or advice.limit_ns is None:
            return text("Payoff not estimated: what a prompt token costs isn't known from this trace.")
        if advice.chunk == 0:
            return text(
                "Even {chunk} prompt tokens push an iteration past {limit}, so smaller chunks only spread the "
                "wait.",
                chunk=str(CHUNK_STEP),
                limit=format_duration(advice.limit_ns, "down"),
            )
        return text(
            "Chunks of {chunk} prompt tokens would keep an iteration under {limit} of {device} time.",
            chunk=f"{advice.chunk:,}",
            limit=format_duration(advice.limit_ns, "up"),
            device=facts.device,
        )
    if advice.kind == "larger_batch":
        return text(
            "{now} requests instead of {before} would give up to {factor}× the tokens/s if {waiting}the KV cache "
            "has room.",
            now=f"{2 * (advice.size or 0):,}",
            before=f"{advice.size:,}",
            factor=format_number(advice.factor or 0.0, 2, "up"),
            waiting="that many wait and " if facts.rates.queued is None else "",
        )
    if advice.kind == "more_kv_cache":
        return text(
            "Saves up to {gain} of a {mean} iteration, and the wait of each preempted request.",
            gain=format_duration(advice.gain_ns, "up"),
            mean=format_duration(mean),
        )
    if advice.eager is not None and advice.eager < 1:
        return text(
            "Saves up to {gain} of a {mean} iteration: {share} of the kernel time of decode forward passes isn't "
            "replayed from a graph.",
            share=format_ratio(advice.eager),
            gain=format_duration(advice.gain_ns, "up"),
            mean=format_duration(mean),
        )
    return text(
        "Saves up to {gain} of a {mean} iteration.",
        gain=format_duration(advice.gain_ns, "up"),
        mean=format_duration(mean),
    )
