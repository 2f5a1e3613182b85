"""A remote folder of named files, copied there and back as a unit: the shared cache."""

from __future__ import annotations

import threading
from typing import Any

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.storage.drivers import connect, without_secrets


class RemoteStore:
    """Access one storage URL; connect on first use. Every method raises StorageError on failure."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.label = without_secrets(url).rstrip("/")
        self._connection: tuple[Any, str] | None = None
        self._lock = threading.Lock()

    def put(self, path: str, name: str) -> None:
        """Upload the local file `path` as `name`."""
        filesystem, root = self._connect()
        try:
            filesystem.makedirs(root, exist_ok=True)
            filesystem.put_file(path, f"{root}/{name}")
        except Exception as error:  # every driver has its own exceptions
            raise self._error("cannot be written", error) from error

    def get(self, name: str, path: str) -> bool:
        """Download the file `name` to `path`; return False if it does not exist."""
        filesystem, root = self._connect()
        try:
            filesystem.get_file(f"{root}/{name}", path)
        except FileNotFoundError:
            return False
        except Exception as error:
            raise self._error("cannot be read", error) from error
        return True

    def has(self, name: str) -> bool:
        filesystem, root = self._connect()
        try:
            return bool(filesystem.exists(f"{root}/{name}"))
        except Exception as error:
            raise self._error("cannot be read", error) from error

    def remove(self, name: str) -> None:
        """Delete the file `name`, if it exists."""
        filesystem, root = self._connect()
        try:
            filesystem.rm_file(f"{root}/{name}")
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._error("cannot be written", error) from error

    def _connect(self) -> tuple[Any, str]:
        with self._lock:
            if self._connection is None:
                self._connection = connect(self._url)
            return self._connection

    def _error(self, what: str, error: Exception) -> StorageError:
        # A driver's own message may carry addresses with signatures.
        return StorageError(f"the shared cache {what} ({type(error).__name__})", where=self.label)
