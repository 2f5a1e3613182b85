"""Reader of device catalogs: the package's `devices.toml`, and a user's file of devices and operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
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


@cache
def built_in_catalog() -> HardwareCatalog:
    """Return the devices that the package knows."""
    text = Path(__file__).with_name("devices.toml").read_text(encoding="utf-8")
    return parse_catalog(text, "devices.toml")


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


def merge_with_built_in(user: HardwareCatalog) -> tuple[tuple[DeviceEntry, ...], tuple[DeviceEntry, ...]]:
    """Return (new devices of `user`, the package's devices); a user's device replaces ours of the same name."""
    new = {entry.name.lower(): entry for entry in user.device}
    known = tuple(new.pop(entry.name.lower(), entry) for entry in built_in_catalog().device)
    return tuple(new.values()), known
