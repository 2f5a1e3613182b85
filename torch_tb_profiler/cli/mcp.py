"""`torch-tb-profiler mcp`: serve the tools for a coding agent over standard input and output."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING

from torch_tb_profiler.base.errors import MissingExtraError, StorageError, UsageError
from torch_tb_profiler.cli._command import OK, Command, add_path
from torch_tb_profiler.cli._output import write_file

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings

MAX_NAME_LENGTH = 100
"""Most characters in the name of a written file, without its number and extension."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument(
        "--output-folder",
        metavar="DIR",
        help="also offer the tool `slice`, which writes files to this folder only",
    )


def _run(options: argparse.Namespace, settings: Settings) -> int:
    try:
        from torch_tb_profiler.mcp.server import serve
    except ImportError as error:
        raise MissingExtraError(
            "the command mcp needs the MCP SDK, version 2.3 or newer, which is not installed",
            hint='pip install "torch-tb-profiler[mcp]"',
        ) from error
    from torch_tb_profiler.mcp.tools import Tools
    from torch_tb_profiler.session import open_session

    folder = options.output_folder
    if folder is not None and not os.path.isdir(folder):
        raise UsageError(
            "there is no such folder", where=folder, hint="create it first; the tool `slice` writes to it"
        )
    with open_session(options.path, settings) as session:
        serve(Tools(session, None if folder is None else OutputFolder(folder).save))
    return OK


class OutputFolder:
    """The folder that new files are written to; existing files are never replaced."""

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)

    def save(self, name: str, pieces: Iterable[bytes]) -> str:
        """Write a compressed file and return its path; raise StorageError if it can't be written.

        Characters of `name` other than letters, digits, dots and dashes become "_", so it can't leave the folder.
        """
        stem = re.sub(r"[^\w.-]", "_", name.removesuffix(".json"), flags=re.ASCII).lstrip(".")[:MAX_NAME_LENGTH]
        path = self._reserve_path(stem)
        try:
            write_file(path, pieces)
        except BaseException:
            os.remove(path)
            raise
        return path

    def _reserve_path(self, stem: str) -> str:
        """Create an empty file with an unused name and return its path; two callers never get the same one."""
        for number in count(1):
            path = os.path.join(self._path, f"{stem}{'' if number == 1 else f'-{number}'}.json.gz")
            try:
                open(path, "xb").close()
                return path
            except FileExistsError:
                continue
            except OSError as error:
                raise StorageError(f"cannot be written: {error.strerror or error}", where=path) from error
        raise AssertionError("count() never ends")


COMMAND = Command(_add_arguments, _run)
