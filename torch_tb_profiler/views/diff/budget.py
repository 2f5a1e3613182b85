"""A budget: limits of the candidate, from a JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.units import parse_bytes, parse_duration

TIMES = ("host_self", "host_total", "device_self", "device_total")


class Budget(msgspec.Struct, frozen=True):
    """Limits of the candidate in ns and bytes; None: no limit.

    operators  name -> one of TIMES -> ns; "" is total device time where it launches work, else total host time
    """

    step_time: int | None = None
    peak_memory: int | None = None
    exposed_communication: int | None = None
    operators: Mapping[str, Mapping[str, int]] | None = None


def parse_budget(text: str) -> Budget:
    """The content of a budget file; UsageError says what is wrong with it."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise UsageError(f"the budget is not valid JSON: {error}") from error
    if not isinstance(given, dict):
        raise UsageError("the budget must be a JSON object", hint='such as {"step_time": "120 ms"}')
    known = ("step_time", "peak_memory", "exposed_communication", "operators")
    wrong = [key for key in given if key not in known]
    if wrong:
        raise UsageError(f"the budget has an unknown key {wrong[0]!r}", hint=f"keys: {', '.join(known)}")
    operators = given.get("operators", {})
    if not isinstance(operators, dict):
        raise UsageError("`operators` of the budget must map names to limits")
    return Budget(
        step_time=_limit(given, "step_time"),
        peak_memory=_limit(given, "peak_memory"),
        exposed_communication=_limit(given, "exposed_communication"),
        operators={name: _operator_limits(name, limits) for name, limits in operators.items()},
    )


def _operator_limits(name: str, limits: Any) -> dict[str, int]:
    if not isinstance(limits, dict):
        limits = {"": limits}
    wrong = [key for key in limits if key not in ("", *TIMES)]
    if wrong:
        raise UsageError(f"the budget of {name} has an unknown key {wrong[0]!r}", hint=f"keys: {', '.join(TIMES)}")
    return {key: limit for key in limits if (limit := _limit(limits, key)) is not None}


def _limit(given: Mapping[str, Any], key: str) -> int | None:
    """A limit in ns or bytes, given as a number or as text with a unit."""
    value = given.get(key)
    if isinstance(value, str):
        return parse_bytes(value) if key == "peak_memory" else parse_duration(value)
    if isinstance(value, bool) or not (value is None or isinstance(value, (int, float))):
        raise UsageError(f"the limit {key!r} of the budget is neither a number nor text with a unit")
    return None if value is None else int(value)
