"""The TensorBoard plugin: a thin adapter from TensorBoard's context to a session and its HTTP routes.

TensorBoard imports this module at every start, for all of its users. So it imports nothing heavy before the
plugin's routes are mounted, and its constructors can't fail.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tensorboard.plugins import base_plugin

from torch_tb_profiler.base.settings import Settings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from torch_tb_profiler.http import App
    from torch_tb_profiler.session import Root, Session

PLUGIN_NAME = "pytorch_profiler"


class PluginLoader(base_plugin.TBLoader):  # type: ignore[misc]
    """Defines the flags and creates the plugin."""

    def define_flags(self, parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("PyTorch profiler plugin")
        for row in fields(Settings):
            kind = type(row.default)
            group.add_argument(
                f"--{PLUGIN_NAME}_{row.name}",
                type=kind,
                default=None,
                metavar=kind.__name__.upper(),
                help=f"{row.metadata['meaning']} (default: {row.default!r}; also {row.metadata['variable']})",
            )

    def load(self, context: base_plugin.TBContext) -> ProfilerPlugin:
        return ProfilerPlugin(context)


class ProfilerPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """The PYTORCH_PROFILER tab."""

    plugin_name = PLUGIN_NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        self._flags = context.flags
        self._logdir = context.logdir
        self._session: Session | None = None

    def get_plugin_apps(self) -> Mapping[str, Callable[..., Any]]:
        """Return one route for all paths, so that the app is imported with the first request.

        This also starts the first listing of the log folder in the background.
        """
        from torch_tb_profiler.session import Session

        settings = _settings(self._flags)
        logging.getLogger("torch_tb_profiler").setLevel(settings.log_level.upper())
        self._session = Session(_roots(self._logdir, self._flags), settings)
        self._session.start()
        return {"/*": self._answer}

    @cached_property
    def _app(self) -> App:
        from torch_tb_profiler.http import App

        assert self._session is not None, "TensorBoard asks for the routes before it serves any"
        return App(self._session)

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        """Answer a request by passing its path below the plugin's name to the app."""
        _, _, path = environ["PATH_INFO"].partition(f"/plugin/{PLUGIN_NAME}/")
        return self._app({**environ, "PATH_INFO": f"/{path.rstrip('/')}"}, start_response)

    def is_active(self) -> bool:
        """Return whether there is a run or an error to show, or the first listing is running; no disk access.

        TensorBoard calls this when a browser opens it, so importing the views here doesn't delay its start.
        """
        session = self._session
        if session is None:
            return False
        session.import_views()
        return not session.scanned or bool(session.catalog.runs) or session.error is not None

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path="/index.js", disable_reload=False)


TorchProfilerPlugin = ProfilerPlugin
"""The plugin's name in version 0.4, which programs outside import."""


def _settings(flags: Any) -> Settings:
    flag_values = {
        row.name: value
        for row in fields(Settings)
        if (value := getattr(flags, f"{PLUGIN_NAME}_{row.name}", None)) is not None
    }
    return replace(Settings.from_environment(), **flag_values)


def _roots(logdir: str | None, flags: Any) -> list[Root]:
    """Return the log folders: --logdir, or the `name:path` parts of --logdir_spec."""
    from torch_tb_profiler.session import Root

    spec = getattr(flags, "logdir_spec", "") or ""
    if spec:
        return [_named_root(part) for part in spec.split(",") if part]
    return [Root(logdir)] if logdir else []


def _named_root(part: str) -> Root:
    from torch_tb_profiler.session import Root

    name, colon, path = part.partition(":")
    # "s3://bucket" and "C:\logs" are paths with a colon, not names.
    if not colon or path.startswith("//") or len(name) == 1 or "/" in name or "\\" in name:
        return Root(part)
    return Root(path, name)
