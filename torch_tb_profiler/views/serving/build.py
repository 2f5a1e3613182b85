"""Serving: what an engine's iterations do, what they cost, and what holds them back."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.serving.advice import serving_advice
from torch_tb_profiler.analyses.serving.columns import (
    iteration_columns,
    iteration_sums,
    listed_iterations,
    request_columns,
)
from torch_tb_profiler.analyses.serving.cost import Coefficient, IterationCost, iteration_cost
from torch_tb_profiler.analyses.serving.idle import CAUSES, ServingTimes
from torch_tb_profiler.analyses.serving.stalls import Stall
from torch_tb_profiler.analyses.serving.summary import (
    PhaseSummary,
    ServingRates,
    decode_families,
)
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.serving.iterations import (
    ServingIterations,
    no_iterations_reason,
    serving_iterations,
)
from torch_tb_profiler.model.serving.requests import serving_requests
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views._shared.serving import serving_facts, serving_headline
from torch_tb_profiler.views.serving import origins, ranks, words
from torch_tb_profiler.views.serving.payload import (
    CostLaw,
    CostTerm,
    DecodeCost,
    Engine,
    IterationColumns,
    IterationsParams,
    IterationsPayload,
    PhaseRow,
    Rates,
    RequestColumns,
    ServingPayload,
    StallRow,
)

MAX_STALLS = 1000
"""Most stalls in an answer."""

MAX_REQUESTS = 2000
"""Most requests in an answer."""


def build(trace: Trace, _: NoParams) -> ServingPayload:
    """Build the Serving view of one trace. Raises NotFoundError if it has no iterations."""
    facts, cost = serving_facts(trace), iteration_cost(trace)
    if facts is None or cost is None:
        raise NotFoundError(f"no iterations of an inference engine: {no_iterations_reason(trace)}")
    found, times, rates, phases, stalls, verdict = facts[:6]
    total, listed = sum(each.total_ns for each in phases), listed_iterations(trace)
    return ServingPayload(
        headline=serving_headline(facts),
        details=words.details(facts),
        what_holds_it_back=verdict.bottleneck,
        engine=Engine(found.engine, found.source),
        iterations=IterationColumns(**iteration_columns(trace, listed)),
        iteration_numbers=listed.tolist(),
        iterations_total=len(found),
        phases=[_build_phase(each, total) for each in phases],
        rates=_build_rates(found, rates),
        cost=_cost(cost),
        stalls=[_build_stall(found, each) for each in _find_largest(stalls)],
        stalls_total=len(stalls),
        requests_total=0 if (recorded := serving_requests(trace)) is None else len(recorded.event),
        idle_by_cause=dict(zip(CAUSES, times.idle.sum(0).tolist(), strict=True)),
        families=decode_families(trace),
        advice=[words.advice_row(each, facts) for each in serving_advice(trace)],
        on_device=times.on_device,
        requests=_build_requests(trace),
        reasons=_reasons(verdict.reason, times),
    )


def build_iterations(trace: Trace, params: IterationsParams) -> IterationsPayload:
    """Build a stretch of iterations. Raises NotFoundError if the trace has none of these numbers."""
    found = serving_iterations(trace)
    if found is None:
        raise NotFoundError(f"no iterations of an inference engine: {no_iterations_reason(trace)}")
    last = len(found) - 1 if params.last is None else min(params.last, len(found) - 1)
    if params.first > last:
        raise NotFoundError(f"there is no iteration {params.first}", hint=f"the last one is {len(found) - 1}")
    listed = listed_iterations(trace, params.first, last)
    return IterationsPayload(
        first=params.first,
        last=last,
        numbers=listed.tolist(),
        columns=IterationColumns(**iteration_columns(trace, listed)),
        **iteration_sums(trace, params.first, last),
    )


def _find_largest(stalls: Sequence[Stall]) -> list[Stall]:
    """Return the stalls with most extra time in their order."""
    if len(stalls) <= MAX_STALLS:
        return list(stalls)
    least = sorted((stall.extra_ns for stall in stalls), reverse=True)[MAX_STALLS - 1]
    return [stall for stall in stalls if stall.extra_ns >= least][:MAX_STALLS]


def _build_phase(phase: PhaseSummary, total: int) -> PhaseRow:
    return PhaseRow(
        phase=phase.phase,
        iterations=phase.iterations,
        share=phase.total_ns / total if total else None,
        total_ns=phase.total_ns,
        median_ns=phase.median_ns,
        p99_ns=phase.p99_ns,
        tokens=phase.tokens,
        requests=phase.requests,
        busy_ns=phase.busy_ns,
        idle_share=phase.idle_ns / phase.total_ns if phase.total_ns else None,
        idle=dict(zip(CAUSES, phase.idle, strict=True)),
        mostly=phase.main_cause,
        graph_share=phase.graphs,
        inferred=phase.inferred,
    )


def _build_rates(found: ServingIterations, rates: ServingRates) -> Rates:
    between, requests, kv = rates.between_tokens, rates.requests, rates.kv_tokens
    first_token, queue, reasons = rates.first_token, rates.queue, dict[str, str]()
    if first_token is None:
        reasons["time_to_first_token_ns"] = words.missing_arrivals_reason(found.engine, rates.recorded)
    if queue is None:
        reasons["queue_median_ns"] = words.missing_arrivals_reason(found.engine, rates.recorded)
    if rates.arrivals is None:
        reasons["arrivals"] = (
            words.WHOLE_SECONDS if rates.recorded else words.missing_arrivals_reason(found.engine, False)
        )
    if rates.queued is None:
        reasons["queued_mean"] = words.missing_queue_reason(rates.engines)
    uncounted = "iterations without labels have no counts" if found.source == "kernels" else "the labels don't say"
    single = "one iteration doesn't make a rate" if len(found) == 1 else uncounted
    if rates.output is None:
        reasons["output_tokens_per_s"] = words.DRAFTS if found.speculative else single
    if rates.prompt is None:
        reasons["prompt_tokens_per_s"] = single
    if between is None:
        reasons["between_tokens_median_ns"] = (
            words.DRAFTS if found.speculative else "fewer than 2 iterations decode"
        )
    if requests is None:
        reasons["requests_mean"] = uncounted
    if kv is None:
        reasons["kv_tokens_mean"] = uncounted
    if rates.window is None:
        reasons["window"] = "too few iterations, or none that count requests"
    return Rates(
        span_ns=rates.span_ns,
        output_tokens_per_s=rates.output,
        prompt_tokens_per_s=rates.prompt,
        output_tokens=rates.output_tokens,
        prompt_tokens=rates.prompt_tokens,
        between_tokens_median_ns=between and between[0],
        between_tokens_p99_ns=between and between[1],
        requests_mean=requests and requests[0],
        requests_min=requests and requests[1],
        requests_max=requests and requests[2],
        kv_tokens_mean=kv and kv[0],
        kv_tokens_max=kv and kv[1],
        time_to_first_token_ns=first_token and first_token[0],
        time_to_first_token_p99_ns=first_token and first_token[1],
        queue_median_ns=queue and queue[0],
        queue_p99_ns=queue and queue[1],
        arrivals=rates.arrivals,
        queued_mean=rates.queued and rates.queued[0],
        queued_max=rates.queued and rates.queued[1],
        waiting_ns=rates.waiting_ns,
        window=rates.window,
        reasons=reasons,
    )


def _build_requests(trace: Trace) -> RequestColumns | None:
    columns = request_columns(trace)
    if columns is None:
        return None
    return RequestColumns(**{name: values[:MAX_REQUESTS] for name, values in columns.items()})


def _cost(cost: IterationCost) -> CostLaw:
    return CostLaw(
        fixed_ns=_build_term(cost.fixed),
        per_prompt_token_ns=_build_term(cost.per_prompt_token),
        per_request_ns=_build_term(cost.per_request),
        per_kv_token_ns=_build_term(cost.per_kv_token),
        explained=_round_to_six_digits(cost.explained),
        iterations=cost.iterations,
        outliers=cost.outliers,
        one_batch=DecodeCost(*cost.batch) if cost.batch is not None else None,
        graph_sizes=list(cost.graph_sizes),
    )


def _build_term(coefficient: Coefficient) -> CostTerm:
    return CostTerm(
        _round_to_six_digits(coefficient.value),
        _round_to_six_digits(coefficient.low),
        _round_to_six_digits(coefficient.high),
        coefficient.reason,
    )


def _round_to_six_digits(value: float | None) -> float | None:
    """Round a fitted value to 6 significant digits: what follows differs between releases of numpy."""
    return None if value is None else float(f"{value:.6g}")


def _build_stall(found: ServingIterations, stall: Stall) -> StallRow:
    event = int(found.event[stall.iteration])
    return StallRow(
        iteration=stall.iteration,
        start_ns=stall.start_ns,
        extra_ns=stall.extra_ns,
        cause=stall.cause,
        requests=stall.requests,
        event=event if event >= 0 else None,
    )


def _reasons(verdict: str | None, times: ServingTimes) -> dict[str, str]:
    reasons = {}
    if verdict is not None:
        reasons["what_holds_it_back"] = verdict
    if not times.on_device:
        reasons["families"] = "no device work was recorded, so a label's own time counts as busy"
    return reasons


TAB = Tab(
    "Where the time goes",
    TraceView("serving", "Serving", NoParams, ServingPayload, build, cached="on_request", rows="phases"),
    no_iterations_reason,
    (
        TraceView(
            "serving/iterations",
            "Iterations",
            IterationsParams,
            IterationsPayload,
            build_iterations,
            rows="columns",
            answers="A stretch of iterations of an inference engine: sums, and columns.",
        ),
        origins.VIEW,
        ranks.VIEW,
    ),
)
