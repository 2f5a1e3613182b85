"""torch-tb-profiler: where the time and the memory of a PyTorch model go.

import torch_tb_profiler

with torch_tb_profiler.open("log") as session:
    overview = session.view("overview", run="resnet", wait=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_tb_profiler.session import Session

__all__ = ["Session", "Settings", "open"]


def __getattr__(name: str) -> Any:
    # TensorBoard imports the package at every start: numpy and the rest wait until they are wanted.
    if name == "Session":
        from torch_tb_profiler.session import Session

        return Session
    if name == "Settings":
        from torch_tb_profiler.base.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open(path: str, settings: Any = None) -> Session:
    """A session over a log folder, a URL or one trace file, listed once.

    settings  a `Settings`; by default the environment's
    Raises ProfilerError if the place cannot be listed. Use it as a context manager, or call `close`.
    """
    from torch_tb_profiler.base.errors import ProfilerError
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import Root, Session

    session = Session([Root(path)], settings or Settings.from_environment())
    session.scan()
    if session.error is not None:
        raise ProfilerError(session.error.message, where=session.error.where, hint=session.error.hint)
    return session
