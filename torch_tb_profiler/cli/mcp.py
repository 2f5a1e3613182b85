"""`torch-tb-profiler mcp`: tools for a coding agent over standard input and output."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING

from torch_tb_profiler.base.errors import MissingExtraError, StorageError, UsageError
from torch_tb_profiler.cli._command import OK, Command, add_path
from torch_tb_profiler.cli._files import save

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings

MOST_LETTERS = 100
"""Of the name of a file, without its number and ending."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument(
        "--output-folder", metavar="DIR", help="offer the tool `slice`, which writes into this folder only"
    )


def _run(options: argparse.Namespace, settings: Settings) -> int:
    try:
        from torch_tb_profiler.mcp.server import serve
    except ImportError as error:
        raise MissingExtraError(
            "the command mcp needs a package that is not installed: the SDK of the protocol, 2.3 or newer",
            hint='pip install "torch-tb-profiler[mcp]"',
        ) from error
    from torch_tb_profiler.mcp.tools import Tools
    from torch_tb_profiler.session import open_session

    folder = options.output_folder
    if folder is not None and not os.path.isdir(folder):
        raise UsageError("there is no such folder", where=folder, hint="create it; --output-folder takes slices")
    with open_session(options.path, settings) as session:
        serve(Tools(session, None if folder is None else OutputFolder(folder).save))
    return OK


class OutputFolder:
    """Where files of proposed names are written, each beside those that are there already."""

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)

    def save(self, name: str, pieces: Iterable[bytes]) -> str:
        """Write a compressed file; its path. StorageError if it cannot be written.

        Nothing but letters, digits, dots and dashes of the name counts, so that it leads to no other folder.
        """
        stem = re.sub(r"[^\w.-]", "_", name.removesuffix(".json"), flags=re.ASCII).lstrip(".")[:MOST_LETTERS]
        path = self._reserved(stem)
        try:
            save(path, pieces)
        except BaseException:
            os.remove(path)
            raise
        return path

    def _reserved(self, stem: str) -> str:
        """The path of a new, empty file; two callers never get the same."""
        for number in count(1):
            path = os.path.join(self._path, f"{stem}{'' if number == 1 else f'-{number}'}.json.gz")
            try:
                open(path, "xb").close()
                return path
            except FileExistsError:
                continue
            except OSError as error:
                raise StorageError(f"cannot be written: {error.strerror or error}", where=path) from error
        raise AssertionError  # there is always a further number


COMMAND = Command(_add_arguments, _run)
