"""The Overview on a terminal: what to change first, how a step is spent, and the devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import capitalize, share_base
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
from torch_tb_profiler.model.devices import device_name

CATEGORIES = {
    "kernel": "Kernel",
    "memcpy": "Memcpy",
    "memset": "Memset",
    "communication": "Communication",
    "runtime": "Runtime",
    "dataloader": "DataLoader",
    "cpu_exec": "CPU Exec",
    "other": "Other",
}
"""The parts of a step in the order of the page."""

_RATIOS = (
    ("utilization", "GPU utilization"),
    ("sm_efficiency", "SM efficiency, est."),
    ("achieved_occupancy", "Achieved occupancy, est."),
    ("tensor_core_ratio", "Tensor Core share"),
)


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of the Overview."""
    average, hardware, advice = payload["average"], payload["hardware"], payload["recommendations"]
    noun = capitalize(payload["step_noun"])
    return Screen(
        sentences_of(payload, "headline", "explanation", *([] if advice else ["no_advice"])),
        facts_of(
            (_average_title(payload), format_duration(average["duration_ns"]) if average else None),
            (f"{noun}s", f"{average['steps']:,}" if average and payload["steps_recorded"] else None),
            ("MFU", _mfu(hardware) if hardware else None),
            ("Rank", _rank(payload["configuration"])),
            *_recorder_facts(payload["configuration"].get("recorder")),
        ),
        [
            *([_advice_table(advice, average)] if advice else []),
            *([_breakdown_table(payload)] if average else []),
            *([_devices_table(payload["devices"])] if payload["devices"] else []),
            *([_steps_table(payload["steps"], noun)] if len(payload["steps"]) > 1 else []),
        ],
        sentences_of(payload, "gains") if advice else [],
        reasons_of(payload),
    )


def _recorder_facts(recorder: dict[str, Any] | None) -> list[tuple[str, str | None]]:
    """Return what the configuration beside the trace leaves out, and where the trace contradicts it."""
    if recorder is None:
        return []
    found = [*recorder["contradictions"], *recorder["left_out"]]
    return [(recorder["file"], " ".join(found) or "leaves nothing out")]


def _average_title(payload: dict[str, Any]) -> str:
    average = payload["average"]
    if not payload["steps_recorded"]:
        return "The whole trace"
    has_odd = bool(average and average["outliers"])
    return capitalize(share_base(average["steps"] if average else 0, True, has_odd, payload["step_noun"]))


def _mfu(hardware: dict[str, Any]) -> str | None:
    if hardware["mfu"] is None:
        return None
    bound = "" if hardware["complete"] else "≥ "
    return f"{bound}{format_ratio(hardware['mfu'])}" + (f" of {hardware['peaks']}" if hardware["peaks"] else "")


def _rank(configuration: dict[str, Any]) -> str | None:
    rank, size = configuration["rank"], configuration["world_size"]
    return None if rank is None else f"{rank} of {size}" if size else str(rank)


def _advice_table(advice: list[Row], average: Row | None) -> Table:
    """Return the advice as numbered rows on one scale, the length of a step."""
    gain = Column("gain_ns", "Saves up to", total=average["duration_ns"] if average else None, rounding="up")
    if not all(each["gain_is_limit"] for each in advice):
        gain = replace(gain, title="Saves", bound="gain_is_limit")
    columns = [Column("number", "", "count"), Column("title", "What to change first", "text"), gain]
    rows = [
        {
            "number": number,
            "title": payload_text(each["title"]),
            "gain_ns": each["gain_ns"],
            "gain_is_limit": each["gain_is_limit"],
            "detail": payload_text(each["text"]),
        }
        for number, each in enumerate(advice, 1)
    ]
    return Table(columns, rows, "recommendation", detail="detail")


def _breakdown_table(payload: dict[str, Any]) -> Table:
    average = payload["average"]
    total = average["duration_ns"]
    columns = [
        Column("title", _average_title(payload), "text"),
        Column("time_ns", "Average" if average["steps"] > 1 else "Time", total=total),
    ]
    times = average["categories"]
    rows = [
        {"title": title, "time_ns": times[name]}
        for name, title in CATEGORIES.items()
        if name in times and times[name] != 0
    ]
    waiting = payload["waiting"]
    if waiting:
        at = next((i for i, row in enumerate(rows) if row["title"] == CATEGORIES["communication"]), len(rows) - 1)
        parts = (
            ("waiting for other ranks", "waiting_ns"),
            ("transfer", "transfer_ns"),
            ("not compared", "uncompared_ns"),
        )
        rows[at + 1 : at + 1] = [
            {"title": f"  {title}", "time_ns": waiting[name]} for title, name in parts if waiting[name] != 0
        ]
    return Table(columns, rows, "category")


def _devices_table(devices: list[Row]) -> Table:
    columns = [
        Column("title", "Device", "text"),
        Column("name", "Name", "text"),
        *(Column(key, title, "ratio") for key, title in _RATIOS),
        Column("memory_bytes", "Memory", "bytes"),
    ]
    rows = [{**device, "title": device_name(device["kind"], device["id"])} for device in devices]
    return Table(columns, rows, "device")


def _steps_table(steps: list[Row], noun: str) -> Table:
    longest = max(step["duration_ns"] for step in steps)
    used = [name for name in CATEGORIES if any(step["categories"].get(name) not in (None, 0) for step in steps)]
    columns = [
        Column("name", noun, "text"),
        Column("duration_ns", "Duration", largest=longest),
        *(Column(f"categories.{name}", CATEGORIES[name]) for name in used),
        Column("complete", "Complete", "flag", hidden=True),
    ]
    return Table(columns, flat_rows(steps), "step", f"{noun} by {noun.lower()}")
