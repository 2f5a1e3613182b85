"""Read the configuration of Gaudi's profiler, which says before a run what the card's recorder is asked for.

    {"GeneralSettings": {"values": {"session": {"value": "train"}}},
     "Plugins": [{"name": "HostProfiler", "enable": true, "values": {"start_disabled": {"value": true}}},
                 {"name": "HwTrace", "enable": true, "values": {
                     "archProfileUnits": {"gaudi2": {"NIC": {"enable": {"value": true}}}},
                     "generalOptions": {"arch": {"value": "gaudi2"}, "profilePhase": {"value": "profileApi"},
                                        "traceBufferSize": {"value": "0x8000000"}}}}]}

`hl-prof-config` writes it to ~/.habana/prof_config.json; HABANA_PROF_CONFIG names another file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.vendors.gaudi import GaudiConfig

__all__ = ["is_gaudi_config", "read_gaudi_config"]

MAX_BYTES = 4 << 20
"""Largest configuration that is read; hl-prof-config writes some ten KiB."""

_PLUGINS = lazy_regex(rb'"Plugins"\s*:\s*\[')
_KNOWN_PLUGINS = lazy_regex(rb'"(?:HwTrace|HostProfiler)"')


def is_gaudi_config(content: bytes) -> bool:
    """Return whether the start of a file reads like a configuration of Gaudi's profiler, whatever its name is."""
    return bool(_PLUGINS.search(content)) and bool(_KNOWN_PLUGINS.search(content))


def read_gaudi_config(stream: BinaryIO, name: str) -> GaudiConfig:
    """Return what a file asks the recorder of a Gaudi card for; `name` is how people know the file.

    Raises TraceError if the file isn't one.
    """
    content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise TraceError("the configuration of Gaudi's profiler is larger than 4 MiB", where=name, hint=_HINT)
    try:
        document = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise TraceError(f"the configuration isn't JSON: {error}", where=name, hint=_HINT) from error
    plugins = document.get("Plugins") if isinstance(document, dict) else None
    if not isinstance(plugins, list):
        raise TraceError("the configuration names no plugins", where=name, hint=_HINT)
    by_name = {each.get("name"): each for each in plugins if isinstance(each, dict)}
    hardware, host = by_name.get("HwTrace", {}), by_name.get("HostProfiler", {})
    options = _child(hardware, "values", "generalOptions")
    arch = _text(options, "arch")
    return GaudiConfig(
        file=name,
        card=_enabled(hardware),
        host=_enabled(host),
        arch=arch,
        phase=_text(options, "profilePhase"),
        buffer_bytes=_size(_value(options, "traceBufferSize")),
        parsed=_value(_child(hardware, "values", "parseOptions"), "skipParse") is not True,
        units=dict(_units(_child(hardware, "values", "archProfileUnits"), arch)),
    )


_HINT = "write it with `hl-prof-config`"


def _child(value: Any, *path: str) -> Mapping[str, Any]:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _value(options: Mapping[str, Any], key: str) -> Any:
    return _child(options, key).get("value")


def _text(options: Mapping[str, Any], key: str) -> str | None:
    found = _value(options, key)
    return found if isinstance(found, str) else None


def _enabled(plugin: Mapping[str, Any]) -> bool | None:
    found = plugin.get("enable")
    return found if isinstance(found, bool) else None


def _size(value: Any) -> int | None:
    """Return bytes: the file has them as "0x8000000" or as a number."""
    if isinstance(value, str):
        try:
            value = int(value, 0)
        except ValueError:
            return None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _units(archs: Mapping[str, Any], arch: str | None) -> Iterator[tuple[str, bool]]:
    """Yield (class of units, whether it is recorded) of one generation; of all if the file doesn't choose one."""
    chosen = [arch] if arch is not None else list(archs)
    for generation in chosen:
        for unit, options in _child(archs, generation).items():
            switch = _value(_child(options), "enable")
            if isinstance(switch, bool):
                yield unit, switch
