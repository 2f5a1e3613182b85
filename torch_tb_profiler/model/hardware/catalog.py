"""The data base of devices: the file of the package, and what a user's file says beside it, of operators too."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import msgspec

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.formulas import parse_formula
from torch_tb_profiler.model.catalog import Catalog, DeviceEntry, OperatorModel


class _File(msgspec.Struct, forbid_unknown_fields=True):
    device: tuple[dict[str, Any], ...] = ()
    operator: tuple[dict[str, Any], ...] = ()


DEVICE_HINT = "[[device]] with name, match, hbm_gbs, source, matrix = { bf16 = ... }, vector = { fp32 = ... }"
OPERATOR_HINT = "[[operator]] with name, flops = 'elements[0]', bytes = 'bytes[0]', unit = 'matrix' or 'vector'"


def read_catalog(text: str, where: str) -> Catalog:
    """A catalog from TOML; UsageError names the line that is no TOML, or the entry that describes nothing."""
    try:
        given = msgspec.toml.decode(text.encode(), type=_File)
    except ValueError as error:
        raise UsageError(f"{where}: {error}", hint=f"{DEVICE_HINT}; {OPERATOR_HINT}") from error
    devices = _entries(given.device, where, "entry", _device, DEVICE_HINT)
    return Catalog(devices, _entries(given.operator, where, "operator", _operator, OPERATOR_HINT))


_Named = TypeVar("_Named", DeviceEntry, OperatorModel)


def _entries(
    given: Sequence[dict[str, Any]], where: str, noun: str, made: Callable[[dict[str, Any]], _Named], hint: str
) -> tuple[_Named, ...]:
    """Each of another name."""
    entries: dict[str, _Named] = {}
    for number, fields in enumerate(given, 1):
        try:
            entry = made(fields)
            if entry.name.lower() in entries:
                raise ValueError("an entry before it has the same name")
        except (ValueError, re.error) as error:
            place = f"{where}, {noun} {number} ({fields.get('name', 'no name')!r})"
            raise UsageError(f"{place}: {error}", hint=hint) from error
        entries[entry.name.lower()] = entry
    return tuple(entries.values())


def _device(fields: dict[str, Any]) -> DeviceEntry:
    entry = msgspec.convert(fields, DeviceEntry)
    re.compile(entry.match)
    return entry


def _operator(fields: dict[str, Any]) -> OperatorModel:
    model = msgspec.convert(fields, OperatorModel)
    if not model.flops and not model.bytes:
        raise ValueError("it gives neither flops nor bytes")
    for formula in (model.flops, model.bytes):
        if formula:
            parse_formula(formula)
    return model


def from_file(text: str, name: str) -> Catalog:
    """What a user's file called `name` says, with it before the source of each device. As `read_catalog`."""
    document = read_catalog(text, name)
    devices = (msgspec.structs.replace(each, source=f"{name}: {each.source}") for each in document.device)
    return Catalog(tuple(devices), document.operator)


@cache
def built_in() -> Catalog:
    """The devices that the package knows."""
    text = (files(__package__) / "devices.toml").read_text(encoding="utf-8")
    return read_catalog(text, "devices.toml")


def with_built_in(own: Catalog) -> tuple[tuple[DeviceEntry, ...], tuple[DeviceEntry, ...]]:
    """(new devices of `own`, those of the package; one of the same name in `own` takes the place of ours)."""
    given = {entry.name.lower(): entry for entry in own.device}
    known = tuple(given.pop(entry.name.lower(), entry) for entry in built_in().device)
    return tuple(given.values()), known
