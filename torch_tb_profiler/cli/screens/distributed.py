"""Distributed on a terminal: stragglers, the average step of each rank, and the collectives."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.grammar import capitalize
from torch_tb_profiler.cli.screens.screen import (
    Column,
    Row,
    Screen,
    Table,
    facts_of,
    flat_rows,
    payload_text,
    reasons_of,
    sentences_of,
)


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `DistributedPayload`."""
    stragglers, averages, collectives = payload["stragglers"], payload["averages"], payload["collectives"]
    read, ranks, noun = payload["read_count"], payload["rank_count"], payload["step_noun"]
    unread = [rank for rank in payload["ranks"] if rank["state"] != "ready"]
    problems = [f"{payload_text(problem['text']).rstrip('.')}." for problem in payload["problems"]]
    return Screen(
        [*sentences_of(payload, "headline", "explanation"), *problems],
        facts_of(
            ("Ranks", f"{ranks:,}" if read == ranks else f"{read:,} of {ranks:,} read"),
            (f"{capitalize(noun)}s", f"{len(payload['steps']):,}"),
            ("Process groups", f"{len(payload['groups']):,}" if payload["groups"] else None),
        ),
        [
            Table(
                _straggler_columns(stragglers, noun),
                _with_causes(_with_ranks(stragglers)),
                "rank",
                "Stragglers",
                detail="why",
            ),
            Table(_average_columns(averages, noun), _with_ranks(averages), "rank", f"Average {noun} per rank"),
            Table(_collective_columns(len(payload["groups"])), _with_ranks(collectives), "row", "Collectives"),
            Table(_FAILED, _with_ranks(unread), "rank", "Not read"),
        ],
        reasons=reasons_of(payload),
    )


def _with_ranks(rows: list[Row]) -> list[Row]:
    """Return flat rows, with `who` as "rank 3", or as the worker's name where its rank is unknown."""
    return [
        {**row, "who": row["worker"] if row["rank"] is None else f"rank {row['rank']}"} for row in flat_rows(rows)
    ]


def _with_causes(rows: list[Row]) -> list[Row]:
    """Return the rows of stragglers with `why` as "Data loading: 12.3 ms more in next"."""
    return [
        {**row, "why": f"{capitalize(row['cause'].replace('_', ' '))}: {row['why']}"} if row["cause"] else row
        for row in rows
    ]


def _straggler_columns(rows: list[Row], noun: str) -> list[Column]:
    return [
        Column("who", "Rank", "text", full="worker"),
        Column("last_ratio", "Arrives last", "ratio"),
        Column(
            "cost_ns",
            f"Costs per {noun}",
            largest=max((row["cost_ns"] for row in rows), default=0),
            limit="cost_is_limit",
        ),
        Column("waiting_per_step_ns", f"Waits per {noun}"),
        Column("why", "Cause", "text", hidden=True),
        Column("host", "Host", "text", hidden=True),
    ]


def _average_columns(rows: list[Row], noun: str) -> list[Column]:
    return [
        Column("who", "Rank", "text", full="worker"),
        Column("duration_ns", capitalize(noun)),
        Column("computation_ns", "Computation"),
        Column("overlap_ns", "Overlap"),
        Column("exposed_ns", "Exposed communication", total=max((row["duration_ns"] for row in rows), default=0)),
        Column("other_ns", "Neither"),
    ]


def _collective_columns(groups: int) -> list[Column]:
    return [
        Column("who", "Rank", "text", full="worker"),
        Column("name", "Collective", "text"),
        Column("group_label", "Process group", "text", hidden=groups == 1),
        Column("calls", "Calls", "count"),
        Column("latency_ns", "Latency"),
        Column("transfer_ns", "Transfer"),
        Column("waiting_ns", "Waiting"),
        Column("exposed_ns", "Exposed"),
        Column("bytes", "Bytes", "bytes"),
        Column("algorithm_bandwidth", "Algorithm", "rate"),
        Column("bus_bandwidth", "Bus bandwidth", "rate"),
    ]


_FAILED = (
    Column("who", "Rank", "text", full="worker"),
    Column("state", "State", "text"),
    Column("reason", "Reason", "text"),
)
