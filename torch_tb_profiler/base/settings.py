"""Settings as rows: name, environment variable, default, meaning. The flags are generated from them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from torch_tb_profiler.base.errors import UsageError


def _row(default: object, variable: str, meaning: str) -> object:
    return field(default=default, metadata={"variable": variable, "meaning": meaning})


@dataclass(frozen=True)
class Settings:
    """What a user can set; `from_environment` reads the variables, surfaces override with flags."""

    cache_dir: str = _row(  # type: ignore[assignment]
        "",
        "TORCH_PROFILER_CACHE_DIR",
        "Folder of the columnar cache, or a URL that several servers and workers share. "
        "Empty: the platform's user cache folder.",
    )
    cache_bytes: int = _row(  # type: ignore[assignment]
        20 * 2**30,
        "TORCH_PROFILER_CACHE_BYTES",
        "How large the cache may grow; the least recently used entries are removed first. 0 turns it off.",
    )
    executor: str = _row(  # type: ignore[assignment]
        "processes:2",
        "TORCH_PROFILER_EXECUTOR",
        "Where large files are parsed: `serial`, `processes:N`, or a Dask cluster, `dask://scheduler:port`.",
    )
    memory_bytes: int = _row(  # type: ignore[assignment]
        4 * 2**30,
        "TORCH_PROFILER_MEMORY_BYTES",
        "How much memory open traces may use in the server; beyond it, the least recently used are closed, and "
        "reopened from the cache when needed.",
    )
    trace_bytes: int = _row(  # type: ignore[assignment]
        4 * 2**30,
        "TORCH_PROFILER_TRACE_BYTES",
        "How much JSON one file may hold, uncompressed. Reading takes up to 2.5 times as much memory; a worker "
        "process may use three times as much.",
    )
    poll_seconds: float = _row(  # type: ignore[assignment]
        5.0,
        "TORCH_PROFILER_POLL_SECONDS",
        "How often the log folder is listed for new runs.",
    )
    small_file_bytes: int = _row(  # type: ignore[assignment]
        16 * 2**20,
        "TORCH_PROFILER_SMALL_FILE_BYTES",
        "Files whose JSON is estimated to be smaller are parsed in the server, without a worker process.",
    )
    devices: str = _row(  # type: ignore[assignment]
        "",
        "TORCH_PROFILER_DEVICES",
        "TOML file with peak rates of devices, and formulas of the work of operators, beside those that are known "
        "or in their place. It is read once, at the start.",
    )
    log_level: str = _row(  # type: ignore[assignment]
        "INFO", "TORCH_PROFILER_LOG_LEVEL", "Level of the log messages on stderr."
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Defaults overridden by environment variables; UsageError names a value that cannot be read."""
        values: dict[str, object] = {}
        for row in fields(cls):
            text = environ.get(row.metadata["variable"])
            if text is None:
                continue
            kind: type[str] | type[int] | type[float] = type(row.default)  # type: ignore[assignment]
            try:
                values[row.name] = kind(text)
            except ValueError as error:
                raise UsageError(
                    f"{row.metadata['variable']}={text!r} is not a valid {kind.__name__}",
                    hint=row.metadata["meaning"],
                ) from error
        return cls(**values)  # type: ignore[arg-type]
