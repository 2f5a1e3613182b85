"""The errors that this package raises on purpose.

    ProfilerError
    |-- UsageError            the caller asked for something that does not exist or makes no sense
    |   |-- NotFoundError     ... an unknown run, worker, span or view
    |   `-- UndecidedError    ... less than is needed to know what is meant
    |-- StorageError          a file or folder cannot be listed or read
    |   `-- MissingExtraError ... because an optional package is not installed
    |-- TraceError            a file was read, but it is not a usable trace
    |   `-- TooLargeError     ... because it is larger than the limit
    |-- WorkerDiedError       the process that was parsing a file was killed
    |   `-- ShutdownError     because nobody waits for it any more
    `-- ClusterError          the cluster that parses files cannot be reached or used

Errors carry data (`where`, `hint`) and a neutral message; surfaces map them to a status or an exit code.
"""

from __future__ import annotations


class ProfilerError(Exception):
    """Base of all errors: what happened, where, and what the user can do about it."""

    code = "internal"

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword-only arguments cannot be unpickled when they return from a worker process.
        return _rebuild, (type(self), self.message, self.where, self.hint)


def _rebuild(kind: type[ProfilerError], message: str, where: str | None, hint: str | None) -> ProfilerError:
    return kind(message, where=where, hint=hint)


class UsageError(ProfilerError):
    code = "usage"


class NotFoundError(UsageError):
    code = "not_found"


class UndecidedError(UsageError):
    code = "undecided"


class StorageError(ProfilerError):
    code = "storage"


class MissingExtraError(StorageError):
    code = "missing_extra"


class TraceError(ProfilerError):
    code = "trace"


class TooLargeError(TraceError):
    code = "too_large"


class WorkerDiedError(ProfilerError):
    code = "worker_died"


class ShutdownError(WorkerDiedError):
    def __init__(self) -> None:
        super().__init__("the server is shutting down")


class ClusterError(ProfilerError):
    code = "cluster"
