"""The cost of a request where batches are padded to the sizes of graphs, and where times follow no law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.serving import Workload, serve
from torch_tb_profiler.analyses.serving.cost import iteration_cost
from torch_tb_profiler.analyses.serving.padding import padded_batches
from torch_tb_profiler.model.trace import ABSENT

SIZES = (1, 2, 4, 8, 16, 24, 32, 40, 48, 64)
PADDED = Workload(graph_sizes=SIZES, requests=60)


def test_a_request_costs_what_a_place_in_a_padded_batch_does() -> None:
    inside = []
    for seed in range(20, 26):
        cost = iteration_cost(serve(replace(PADDED, seed=seed))[0])
        assert cost is not None
        assert set(cost.graph_sizes) <= set(range(1, 65)) and {8, 16} <= set(cost.graph_sizes)
        for each, truth in zip(cost.coefficients, PADDED.law, strict=True):
            assert each.value == pytest.approx(1000 * truth, rel=0.1)
            assert each.low is not None and each.high is not None
            inside.append(each.low <= 1000 * truth <= each.high)
    assert np.mean(inside) >= 0.85


def test_times_that_grow_with_each_request_show_no_padding() -> None:
    cost = iteration_cost(serve(replace(PADDED, graph_sizes=()))[0])
    assert cost is not None and cost.graph_sizes == ()


def test_times_that_follow_no_line_tell_no_cost_of_a_request() -> None:
    requests = np.repeat(np.arange(1, 17), 8)
    scatter = np.random.default_rng(1).normal(1, 0.003, len(requests))
    absent, graphs = np.full(len(requests), ABSENT), np.ones(len(requests), np.bool_)
    curved = padded_batches(requests, graphs, graphs, (1000.0 + requests**2) * scatter, absent)
    straight = padded_batches(requests, graphs, graphs, (1000.0 + 20 * requests) * scatter, absent)
    assert (curved.uneven, straight.uneven) == (True, False)


def test_a_size_in_the_label_counts_only_if_the_times_agree() -> None:
    requests = np.repeat(np.arange(1, 17), 8)
    named = np.array([next(size for size in SIZES if size >= each) for each in requests])
    scatter = np.random.default_rng(1).normal(1, 0.003, len(requests))
    graphs = np.ones(len(requests), np.bool_)
    padded = padded_batches(requests, graphs, graphs, (1000.0 + 20 * named) * scatter, named)
    even = padded_batches(requests, graphs, graphs, (1000.0 + 20 * requests) * scatter, named)
    assert padded.sizes[0].tolist() == named.tolist()
    assert even.sizes[0].tolist() == requests.tolist()


def test_a_device_that_slows_down_has_no_single_law() -> None:
    cost = iteration_cost(serve(Workload(slower=(80, 1.3)))[0])
    assert cost is not None
    assert [each.value for each in cost.coefficients] == [None] * 4
    assert "from iteration 80 on, the same batch takes a different time" in (cost.fixed.reason or "")
