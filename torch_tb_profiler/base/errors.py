"""The errors that this package raises on purpose.

    ProfilerError
    |-- UsageError            the request names something that doesn't exist or makes no sense
    |   |-- NotFoundError     ... an unknown run, worker, span, or view
    |   `-- UndecidedError    ... the request is ambiguous
    |-- StorageError          a file or folder cannot be listed or read
    |   `-- MissingExtraError ... because an optional package isn't installed
    |-- TraceError            a file was read, but it isn't a usable trace
    |   `-- TooLargeError     ... because it is larger than the limit
    |-- WorkerDiedError       the process that was parsing a file was killed
    |   `-- ShutdownError     ... because the server shuts down
    `-- ClusterError          the cluster that parses files can't be reached or used

Errors have a message and data (`where`, `hint`); surfaces map them to an HTTP status or an exit code.
"""

from __future__ import annotations


class ProfilerError(Exception):
    """The base of all errors: what happened, where, and what the user can do about it."""

    code = "internal"

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle can't rebuild exceptions with keyword-only arguments, which worker processes return.
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
