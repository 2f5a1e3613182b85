"""Modules on a terminal: the model as a tree, then its classes."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.cli.screens.screen import (
    Column,
    Screen,
    Table,
    flat_rows,
    reasons_of,
    sentences_of,
    speed_columns,
)

_HIDDEN_SPEED = ("flops_per_s", "bytes_per_s", "bound")


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `ModulesPayload`."""
    return Screen(
        sentences_of(payload, "headline", "details"),
        tables=module_tables(payload),
        reasons=module_reasons(payload),
    )


def module_tables(payload: dict[str, Any]) -> list[Table]:
    """Return the tree of modules and the table of their classes, without device columns if there is no device."""
    device, backward = payload["has_device"], payload["has_backward"]
    device_total, host_total = payload["device_ns"], sum(row["host_total_ns"] or 0 for row in payload["rows"])
    tree = [
        Column("name", "Module", "text"),
        Column("calls", "Calls", "count"),
        Column("operators", "Operators", "count"),
        *([Column("device_total_ns", "Device total", total=device_total)] if device else []),
        *([Column("device_self_ns", "Device self")] if device else []),
        *(
            [Column("forward_device_total_ns", "Forward"), Column("backward_device_total_ns", "Backward")]
            if device and backward
            else []
        ),
        _host_column("host_total_ns", "Host total", device, host_total),
        Column("host_self_ns", "Host self"),
        Column("operators_ns", "Operators, host", hidden=device),
        Column("host_mean_ns", "Mean call", hidden=device and backward),
        *([Column("backward_host_total_ns", "Backward, host", hidden=device)] if backward else []),
        *speed_columns(hidden=_HIDDEN_SPEED),
        Column("place", "Place", "number", hidden=True),
    ]
    classes = [
        Column("name", "Class", "text"),
        Column("modules", "Modules", "count"),
        Column("calls", "Calls", "count"),
        Column("operators", "Operators", "count"),
        *([Column("device_self_ns", "Device self", total=device_total)] if device else []),
        *(
            [Column("forward_device_self_ns", "Forward"), Column("backward_device_self_ns", "Backward")]
            if device and backward
            else []
        ),
        _host_column("host_exclusive_ns", "Host exclusive", device, host_total),
        *([Column("backward_host_self_ns", "Backward, host", hidden=device)] if backward else []),
        *speed_columns(hidden=_HIDDEN_SPEED),
    ]
    by_class = sorted(
        flat_rows(payload["classes"]),
        key=lambda row: row["device_self_ns"] if device else row["host_exclusive_ns"] or 0,
        reverse=True,
    )
    return [
        Table(tree, flat_rows(payload["rows"]), "module"),
        Table(classes, by_class, "class", "By class"),
    ]


def _host_column(key: str, title: str, device: bool, total: int) -> Column:
    """Return a column of host time: in percent only without device time, as two bases in one row are a riddle."""
    return Column(key, title, largest=total) if device else Column(key, title, total=total)


def module_reasons(payload: dict[str, Any]) -> dict[str, str]:
    """Return why the columns of modules are unknown, by their keys."""
    reasons = reasons_of(payload)
    return {name: text for name, text in reasons.items() if name not in ("speed", "module_id", "device_share")}
