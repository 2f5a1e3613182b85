"""Reader of a user's file of devices and operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.formulas import parse_formula
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.model.hardware_catalog import DeviceEntry, HardwareCatalog, OperatorModel

DEVICE_HINT = "[[device]] with name, match, hbm_gbs, source, matrix = { bf16 = ... }, vector = { fp32 = ... }"
OPERATOR_HINT = "[[operator]] with name, flops = 'elements[0]', bytes = 'bytes[0]', unit = 'matrix' or 'vector'"


class _CatalogFile(msgspec.Struct, forbid_unknown_fields=True):
    device: tuple[dict[str, Any], ...] = ()
    operator: tuple[dict[str, Any], ...] = ()


def parse_user_catalog(text: str, name: str) -> HardwareCatalog:
    """Parse a user's file called `name` and put that name before the source of each device.

    Raise UsageError as `parse_catalog`.
    """
    catalog = parse_catalog(text, name)
    devices = (msgspec.structs.replace(entry, source=f"{name}: {entry.source}") for entry in catalog.device)
    return HardwareCatalog(tuple(devices), catalog.operator)


def parse_catalog(text: str, file: str) -> HardwareCatalog:
    """Parse a catalog from TOML; raise UsageError that names the invalid line, or the invalid entry, of `file`."""
    try:
        content = msgspec.toml.decode(text.encode(), type=threadsafe(_CatalogFile))
    except ValueError as error:
        raise UsageError(f"{file}: {error}", hint=f"{DEVICE_HINT}; {OPERATOR_HINT}") from error
    devices = _convert_entries(content.device, file, "entry", _convert_device, DEVICE_HINT)
    operators = _convert_entries(content.operator, file, "operator", _convert_operator, OPERATOR_HINT)
    return HardwareCatalog(devices, operators)


_Converted = TypeVar("_Converted", DeviceEntry, OperatorModel)


def _convert_entries(
    entries: Sequence[dict[str, Any]],
    file: str,
    noun: str,
    convert: Callable[[dict[str, Any]], _Converted],
    hint: str,
) -> tuple[_Converted, ...]:
    """Convert all entries; raise UsageError for an invalid one and for a name that occurs twice."""
    by_name: dict[str, _Converted] = {}
    for number, fields in enumerate(entries, 1):
        try:
            entry = convert(fields)
            if entry.name.lower() in by_name:
                raise ValueError("an earlier entry has the same name")
        except (ValueError, re.error) as error:
            place = f"{file}, {noun} {number} ({fields.get('name', 'no name')!r})"
            raise UsageError(f"{place}: {error}", hint=hint) from error
        by_name[entry.name.lower()] = entry
    return tuple(by_name.values())


def _convert_device(fields: dict[str, Any]) -> DeviceEntry:
    entry = msgspec.convert(fields, threadsafe(DeviceEntry))
    re.compile(entry.match, re.IGNORECASE)  # as it is searched with
    return entry


def _convert_operator(fields: dict[str, Any]) -> OperatorModel:
    model = msgspec.convert(fields, threadsafe(OperatorModel))
    if not model.flops and not model.bytes:
        raise ValueError("it has neither flops nor bytes")
    for formula in (model.flops, model.bytes):
        if formula:
            parse_formula(formula)
    return model
