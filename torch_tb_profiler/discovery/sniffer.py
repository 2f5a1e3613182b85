"""Is this file a trace? Asked only where the name does not say, and once per content."""

from __future__ import annotations

from collections.abc import Set

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.ingest.head import HEAD_BYTES, unpack_head
from torch_tb_profiler.ingest.registry import recognize
from torch_tb_profiler.storage import FileId


class Sniffer:
    """Remembers the verdict per file identity, so that polling reads no unchanged file again."""

    def __init__(self) -> None:
        self._verdicts: dict[FileId, bool] = {}

    def is_trace(self, file: ListedFile) -> bool:
        """True if the first bytes look like a trace; a file that cannot be read is none (and is asked again)."""
        if file.id not in self._verdicts:
            try:
                with file.open() as stream:
                    head = stream.read(HEAD_BYTES)
            except (OSError, StorageError):
                return False
            self._verdicts[file.id] = recognize(unpack_head(head)) is not None
        return self._verdicts[file.id]

    def keep_only(self, ids: Set[FileId]) -> None:
        """Forget the verdicts on other files."""
        self._verdicts = {id_: verdict for id_, verdict in self._verdicts.items() if id_ in ids}
