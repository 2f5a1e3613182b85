"""The data base of devices: the file of the package, and what a file of the user says beside it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.catalog import Catalog, Entry


class _File(msgspec.Struct, forbid_unknown_fields=True):
    device: tuple[dict[str, Any], ...] = ()


def read_catalog(text: str, where: str) -> Catalog:
    """A catalog from TOML; UsageError names the line that is no TOML, or the entry that is no device."""
    hint = "[[device]] with name, match, hbm_gbs, source, matrix = { bf16 = ... }, vector = { fp32 = ... }"
    place = where
    try:
        entries: dict[str, Entry] = {}
        for number, given in enumerate(msgspec.toml.decode(text.encode(), type=_File).device, 1):
            place = f"{where}, entry {number} ({given.get('name', 'no name')!r})"
            entry = msgspec.convert(given, Entry)
            re.compile(entry.match)
            if entry.name.lower() in entries:
                raise ValueError("an entry before it has the same name")
            entries[entry.name.lower()] = entry
    except (ValueError, re.error) as error:
        raise UsageError(f"{place}: {error}", hint=hint) from error
    return Catalog(tuple(entries.values()))


def from_file(text: str, name: str) -> Catalog:
    """The devices of a user's file called `name`, each with that name before its source. As `read_catalog`."""
    entries = read_catalog(text, name).device
    return Catalog(tuple(msgspec.structs.replace(each, source=f"{name}: {each.source}") for each in entries))


@cache
def built_in() -> Catalog:
    """The devices that the package knows."""
    text = (files(__package__) / "devices.toml").read_text(encoding="utf-8")
    return read_catalog(text, "devices.toml")


def with_built_in(own: Catalog) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """(new devices of `own`, those of the package; one of the same name in `own` takes the place of ours)."""
    given = {entry.name.lower(): entry for entry in own.device}
    known = tuple(given.pop(entry.name.lower(), entry) for entry in built_in().device)
    return tuple(given.values()), known
