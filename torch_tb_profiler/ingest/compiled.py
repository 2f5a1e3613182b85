"""Load compiled readers with ctypes: plain C that needs no Python headers and releases the GIL.

One file serves every Python version of a platform. Where it is missing or can't be loaded, Python code reads
everything.

It is used only where TORCH_PROFILER_NATIVE enables it: in worker processes, and in commands that read a large
file. A crash there costs one file, and a line on standard error says what to do. The process of a server, a
notebook, or a training job must not take that risk. Functions that get nothing but columns checked by Python
(those that compare the ranks of a job, sum columns, or replay a schedule) read no file, so they are used
everywhere unless it is 0.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ABSENT = "not part of this installation"
"""Why a library is unavailable that wasn't built."""

_SWITCH = "TORCH_PROFILER_NATIVE"
_LOG = logging.getLogger(__name__)
_FILE_NAMES = {"darwin": "lib{}.dylib", "win32": "{}.dll"}


def is_enabled() -> bool:
    """Return whether this process may use compiled readers."""
    return os.environ.get(_SWITCH, "0") != "0"


def is_allowed() -> bool:
    """Return whether this process may use compiled functions that get nothing but columns checked by Python."""
    return os.environ.get(_SWITCH) != "0"


class CompiledLibrary(NamedTuple):
    """A library that setup.py builds beside the code that loads it.

    name       "events" is libevents.so on Linux, libevents.dylib on macOS, events.dll on Windows
    prefix     of its functions; `<prefix>_abi` returns its version and `<prefix>_say_crash` takes `crash_message`
    functions  function name -> result type and parameter types
    """

    name: str
    prefix: str
    version: int
    functions: Mapping[str, tuple[Any, ...]]

    @property
    def file_name(self) -> str:
        return _FILE_NAMES.get(sys.platform, "lib{}.so").format(self.name)

    @property
    def crash_message(self) -> str:
        """Return what a crash of the library writes to standard error before the process ends."""
        return (
            f"{self.file_name}: the native reader crashed on a file; "
            f"set {_SWITCH}=0 to read without it, and please report it\n"
        )

    def load(self, folder: Path) -> Any | None:
        """Return the library in `folder`, or None if it is missing; one that can't be loaded is logged."""
        library = self._open(folder)
        if isinstance(library, str):
            if library is not ABSENT:
                _LOG.warning("%s %s; reading without it", self.file_name, library)
            return None
        getattr(library, f"{self.prefix}_say_crash")(self.crash_message.encode())
        return library

    def describe_state(self, folder: Path) -> str:
        """Return in words whether the library is in use where it is enabled."""
        if os.environ.get(_SWITCH) == "0":
            return f"turned off by {_SWITCH}=0"
        library = self._open(folder)
        return library if isinstance(library, str) else "in use"

    def _open(self, folder: Path) -> Any | str:
        """Return the library, or in words why it is unavailable."""
        path = folder / self.file_name
        if not path.is_file():
            return ABSENT
        try:
            library = ctypes.CDLL(str(path))
            for name, (result, *parameters) in self.functions.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, parameters
        except (OSError, AttributeError) as error:
            return f"can't be loaded: {error}"
        if (version := getattr(library, f"{self.prefix}_abi")()) != self.version:
            return f"has another version ({version}, not {self.version}); reinstall this package"
        return library
