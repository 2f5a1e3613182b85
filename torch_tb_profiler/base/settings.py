"""Settings with their environment variables, defaults, and descriptions; the CLI's flags come from them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from torch_tb_profiler.base.errors import UsageError

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
"""Levels of the standard library's logging."""

_KINDS = {"int": "a whole number", "float": "a number"}
"""Type of a setting -> how a message calls its values."""


def _setting(default: object, variable: str, meaning: str) -> object:
    return field(default=default, metadata={"variable": variable, "meaning": meaning})


@dataclass(frozen=True)
class Settings:
    """The user's settings: `from_environment` reads the variables, and surfaces override them with flags."""

    cache_dir: str = _setting(  # type: ignore[assignment]
        "",
        "TORCH_PROFILER_CACHE_DIR",
        "Folder of the columnar cache, or a URL that several servers and workers share. "
        "By default, the user's cache folder on this platform.",
    )
    cache_bytes: int = _setting(  # type: ignore[assignment]
        20 * 2**30,
        "TORCH_PROFILER_CACHE_BYTES",
        "Maximum size of the cache; the least recently used entries are removed first. 0 turns it off.",
    )
    executor: str = _setting(  # type: ignore[assignment]
        "processes:2",
        "TORCH_PROFILER_EXECUTOR",
        "Where large files are parsed: `serial`, `processes:N`, or a Dask cluster, `dask://scheduler:port`.",
    )
    memory_bytes: int = _setting(  # type: ignore[assignment]
        4 * 2**30,
        "TORCH_PROFILER_MEMORY_BYTES",
        "Maximum memory of open traces in the server. Beyond it, the least recently used traces are closed and "
        "reopened from the cache when needed.",
    )
    trace_bytes: int = _setting(  # type: ignore[assignment]
        4 * 2**30,
        "TORCH_PROFILER_TRACE_BYTES",
        "Maximum uncompressed size of a trace file. Reading it takes up to 2.5 times as much memory; a worker "
        "process may use three times as much.",
    )
    poll_seconds: float = _setting(  # type: ignore[assignment]
        5.0,
        "TORCH_PROFILER_POLL_SECONDS",
        "Interval at which the log folder is searched for new runs.",
    )
    small_file_bytes: int = _setting(  # type: ignore[assignment]
        16 * 2**20,
        "TORCH_PROFILER_SMALL_FILE_BYTES",
        "Files with a smaller estimated uncompressed size are parsed in the server, without a worker process.",
    )
    devices: str = _setting(  # type: ignore[assignment]
        "",
        "TORCH_PROFILER_DEVICES",
        "TOML file with peak rates of devices and FLOP formulas of operators, which extend or replace the "
        "built-in ones. It is read once, at the start.",
    )
    log_level: str = _setting(  # type: ignore[assignment]
        "INFO", "TORCH_PROFILER_LOG_LEVEL", "Level of the log messages on stderr."
    )

    def __post_init__(self) -> None:
        if self.log_level.upper() not in LOG_LEVELS:
            hint = f"one of {', '.join(LOG_LEVELS)}; see TORCH_PROFILER_LOG_LEVEL"
            raise UsageError(f"{self.log_level!r} is not a log level", hint=hint)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Return the defaults overridden by environment variables; raise UsageError for an invalid value."""
        values: dict[str, object] = {}
        for setting in fields(cls):
            text = environ.get(setting.metadata["variable"])
            if text is None:
                continue
            kind: type[str] | type[int] | type[float] = type(setting.default)  # type: ignore[assignment]
            try:
                values[setting.name] = kind(text)
            except ValueError as error:
                raise UsageError(
                    f"{setting.metadata['variable']}={text!r} is not {_KINDS[kind.__name__]}",
                    hint=setting.metadata["meaning"],
                ) from error
        return cls(**values)  # type: ignore[arg-type]
