"""What the Serving view answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.views._shared.text import Text


class Engine(msgspec.Struct, frozen=True):
    """The inference engine.

    name  as people call it; null where only kernels tell
    by    annotations, or kernels where iterations are inferred
    """

    name: str | None
    by: str


class IterationColumns(msgspec.Struct, frozen=True):
    """Columns of all iterations in order of time; null where the labels don't say.

    event            row of the label
    phase            prefill, decode or mixed
    phase_inferred   the phase is read from kernels, not from the label
    start_ns, duration_ns  from the end of the work before it to the end of its own, without waits for requests
    host_start_ns, host_duration_ns      of its label
    device_start_ns, device_duration_ns  of its device work
    requests, prompt_tokens, decode_requests, decode_tokens, kv_tokens  recomputed prompts count as prompt tokens
    recomputed_tokens  of preempted requests; part of prompt_tokens
    busy_ns          time in which the device worked on it; of the label where no device work is recorded
    idle             cause -> ns of idle time before and within it
    graph            whether one graph replay is nearly all of it
    """

    event: list[int | None]
    phase: list[str | None]
    phase_inferred: list[bool]
    start_ns: list[int]
    duration_ns: list[int]
    host_start_ns: list[int]
    host_duration_ns: list[int]
    device_start_ns: list[int | None]
    device_duration_ns: list[int | None]
    requests: list[int | None]
    prompt_tokens: list[int | None]
    decode_requests: list[int | None]
    decode_tokens: list[int | None]
    kv_tokens: list[int | None]
    recomputed_tokens: list[int]
    busy_ns: list[int]
    idle: Mapping[str, list[int]]
    graph: list[bool | None]


class IterationsParams(msgspec.Struct, frozen=True):
    """The iterations from number `first` to `last`, both included; to the end by default."""

    first: Annotated[int, msgspec.Meta(ge=0)] = 0
    last: Annotated[int, msgspec.Meta(ge=0)] | None = None


class IterationsPayload(msgspec.Struct, frozen=True):
    """A stretch of iterations: what they take and count together, and their columns.

    iterations   how many there are; of more than about 2,000 `columns` has a selection, `numbers` says which
    idle         cause -> ns
    prompt_tokens, decode_requests  null where the labels don't say
    """

    first: int
    last: int
    iterations: int
    duration_ns: int
    busy_ns: int
    idle: Mapping[str, int]
    prompt_tokens: int | None
    decode_requests: int | None
    numbers: list[int]
    columns: IterationColumns


class PhaseRow(msgspec.Struct, frozen=True):
    """The iterations of one phase; null is unknown.

    share        of the time of all iterations
    tokens, requests  means of an iteration
    idle_share   of the phase's time
    idle         cause -> ns
    mostly       cause with the most idle time
    graph_share  of the iterations, those that are one graph replay
    inferred     how many have their phase from kernels
    """

    phase: str | None
    iterations: int
    share: float | None
    total_ns: int
    median_ns: float
    p99_ns: float
    tokens: float | None
    requests: float | None
    busy_ns: int
    idle_share: float | None
    idle: Mapping[str, int]
    mostly: str | None
    graph_share: float | None
    inferred: int


class Rates(msgspec.Struct, frozen=True):
    """Rates over the window; null is unknown, and `reasons` says why.

    output_tokens_per_s  of requests that decode; the first token, which a prefill makes, isn't counted
    between_tokens_*     from a token of a request to its next
    time_to_first_token_*, queue_*  from a request's arrival to its first token, and until it is scheduled first;
                         they need request spans or the server's log beside the trace
    arrivals             requests that arrived while the trace was recorded
    queued_mean, queued_max  requests in the queue, over the lines of the server's log within the trace
    window               steady, ramp_up or draining
    """

    span_ns: int
    output_tokens_per_s: float | None
    prompt_tokens_per_s: float | None
    output_tokens: int | None
    prompt_tokens: int | None
    between_tokens_median_ns: float | None
    between_tokens_p99_ns: float | None
    requests_mean: float | None
    requests_min: int | None
    requests_max: int | None
    kv_tokens_mean: float | None
    kv_tokens_max: int | None
    time_to_first_token_ns: float | None
    time_to_first_token_p99_ns: float | None
    queue_median_ns: float | None
    queue_p99_ns: float | None
    arrivals: int | None
    queued_mean: float | None
    queued_max: int | None
    waiting_ns: int
    window: str | None
    reasons: Mapping[str, str]


class RequestColumns(msgspec.Struct, frozen=True):
    """Columns of the requests that ran while the trace was recorded, in order of arrival; null where unknown.

    event                      row of its slice, which carries its name
    arrival_ns, end_ns         since the start of the trace; they may lie outside of it
    queue_ns, first_token_ns   since its arrival
    arrival_precision_ns       it arrived less than this after `arrival_ns`: a log may say whole seconds
    """

    event: list[int]
    arrival_ns: list[int | None]
    end_ns: list[int | None]
    queue_ns: list[int | None]
    first_token_ns: list[int | None]
    prompt_tokens: list[int | None]
    output_tokens: list[int | None]
    arrival_precision_ns: list[int | None]


class CostTerm(msgspec.Struct, frozen=True):
    """A value in ns with its 95% interval, or null with the reason."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


class DecodeCost(msgspec.Struct, frozen=True):
    """What a decode iteration takes where nearly all have the same number of requests."""

    requests: int
    duration_ns: float


class CostLaw(msgspec.Struct, frozen=True):
    """Kernel time of an iteration: fixed + prompt tokens + decoding requests + KV tokens, each times its cost.

    explained   share of the variation of the time, without outliers; null without a fit
    iterations  that were fitted, and of these the outliers
    one_batch   where only the cost of one batch size is known
    graph_sizes what batches were padded to, as the times show; a request's cost is then that of each place
    """

    fixed_ns: CostTerm
    per_prompt_token_ns: CostTerm
    per_request_ns: CostTerm
    per_kv_token_ns: CostTerm
    explained: float | None
    iterations: int
    outliers: int
    one_batch: DecodeCost | None
    graph_sizes: list[int]


class StallRow(msgspec.Struct, frozen=True):
    """An iteration that made requests wait, by how much, and why.

    requests  how many waited, null where the labels don't count them
    """

    iteration: int
    start_ns: int
    extra_ns: int
    cause: str
    requests: int | None
    event: int | None


class AdviceRow(msgspec.Struct, frozen=True):
    """What to set, and at most what it gains.

    gain_ns, gain_share  of an average iteration; null where it isn't a matter of time
    """

    kind: str
    title: Text
    detail: Text
    gain_ns: float | None
    gain_share: float | None


class ServingPayload(msgspec.Struct, frozen=True):
    """Iterations of an inference engine: what they do, what they cost, and what holds them back.

    headline             rate, and what holds the engine back
    details              evidence, and what of it is uncertain
    what_holds_it_back   host_scheduler, sampling_on_host, launch, network, prefill_blocks_decode, kv_cache_full,
                         no_requests or device; null with a reason where it is unknown
    idle_by_cause        cause -> ns of all idle time
    families             kernel family -> ns of device time of all decode iterations
    iterations           columns of all, or of more than about 2,000 of a selection: the longest of each stretch
    iteration_numbers    which of them `iterations` holds
    iterations_total     how many there are
    stalls               the 1,000 with most extra time, in order of time; `stalls_total` counts all
    requests             those in spans or the server's log beside the trace, the first 2,000 of `requests_total`;
                         null without any
    reasons              field -> why it is null
    """

    headline: Text
    details: Text
    what_holds_it_back: str | None
    engine: Engine
    iterations: IterationColumns
    phases: list[PhaseRow]
    rates: Rates
    cost: CostLaw
    stalls: list[StallRow]
    idle_by_cause: Mapping[str, int]
    families: Mapping[str, int]
    advice: list[AdviceRow]
    on_device: bool
    requests: RequestColumns | None
    reasons: Mapping[str, str]
    iteration_numbers: list[int]
    iterations_total: int
    stalls_total: int
    requests_total: int
