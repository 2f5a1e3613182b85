"""The fsspec driver of each URL scheme, with its options from the environment.

The variables are those that the storage's own tools and TensorBoard read, so a machine set up for them needs
nothing more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from torch_tb_profiler.base.errors import MissingExtraError, StorageError

CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 5, 30, 3
"""Timeouts of a request and how often a driver tries it, so that a storage that is down shows within minutes."""

_AZURE_HOST = ".blob.core.windows.net"

EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "blob",
    "abfs": "blob",
    "abfss": "blob",
}
"""Scheme -> the extra of this package that installs its driver; that of hdfs:// is always installed."""


def connect(url: str, environ: Mapping[str, str] = os.environ) -> tuple[Any, str]:
    """Return the fsspec filesystem of a URL and the path inside it, without making a request.

    Raise MissingExtraError if the driver is not installed, StorageError if no driver knows the scheme.
    """
    import fsspec

    url, options = driver_options(url, environ)
    scheme = url.split("://", 1)[0].lower()
    try:
        # Each listing must be current, because new traces appear in the folder.
        filesystem, root = fsspec.core.url_to_fs(url, use_listings_cache=False, **options)
    except ImportError as error:
        extra = EXTRAS.get(scheme)
        install = f'pip install "torch-tb-profiler[{extra}]"' if extra else str(error)
        raise MissingExtraError(
            f"reading {scheme}:// needs a driver that is not installed", where=without_secrets(url), hint=install
        ) from error
    except ValueError as error:
        known = ", ".join(f"{name}://" for name in EXTRAS)
        raise StorageError(
            f"{scheme}:// cannot be opened ({type(error).__name__})",
            where=without_secrets(url),
            hint=f"use {known}, hdfs://, or another scheme that fsspec supports",
        ) from error
    return filesystem, str(root).rstrip("/")


def driver_options(url: str, environ: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the URL in fsspec's spelling and the options of its driver."""
    parts = urlsplit(url)
    if parts.scheme == "https" and (parts.hostname or "").endswith(_AZURE_HOST):
        account = (parts.hostname or "").removesuffix(_AZURE_HOST)
        options = _azure_options(environ)
        if "connection_string" not in options:
            options["account_name"] = account
            if parts.query:
                options["sas_token"] = parts.query
        return f"az://{parts.path.lstrip('/')}", options
    build_options = _OPTIONS.get(parts.scheme.lower())
    return url, build_options(environ) if build_options else {}


def without_secrets(url: str) -> str:
    """Return a URL without user, password, and query (which may carry signatures), so that it can be shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _s3_options(environ: Mapping[str, str]) -> dict[str, Any]:
    client: dict[str, Any] = {}
    secure = _is_enabled(environ, "S3_USE_HTTPS")
    endpoint = environ.get("S3_ENDPOINT")
    if endpoint:
        scheme = "https" if secure else "http"
        client["endpoint_url"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if environ.get("AWS_REGION"):
        client["region_name"] = environ["AWS_REGION"]
    if not _is_enabled(environ, "S3_VERIFY_SSL"):
        client["verify"] = False
    limits = {
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"max_attempts": ATTEMPTS},
    }
    options: dict[str, Any] = {"client_kwargs": client, "config_kwargs": limits, "use_ssl": secure}
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        options["key"] = environ["AWS_ACCESS_KEY_ID"]
        options["secret"] = environ["AWS_SECRET_ACCESS_KEY"]
        if environ.get("AWS_SESSION_TOKEN"):
            options["token"] = environ["AWS_SESSION_TOKEN"]
    return options


def _azure_options(environ: Mapping[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {"connection_timeout": CONNECT_SECONDS, "read_timeout": READ_SECONDS}
    if environ.get("AZURE_STORAGE_CONNECTION_STRING"):
        options["connection_string"] = environ["AZURE_STORAGE_CONNECTION_STRING"]
    return options


def _google_options(environ: Mapping[str, str]) -> dict[str, Any]:
    # An emulator has no accounts. Otherwise the driver tries default credentials, then anonymous access.
    return {"token": "anon"} if environ.get("STORAGE_EMULATOR_HOST") else {}


_OPTIONS: dict[str, Callable[[Mapping[str, str]], dict[str, Any]]] = {
    "s3": _s3_options,
    "s3a": _s3_options,
    "az": _azure_options,
    "abfs": _azure_options,
    "abfss": _azure_options,
    "gs": _google_options,
    "gcs": _google_options,
}


def _is_enabled(environ: Mapping[str, str], name: str) -> bool:
    """Return True unless the variable is "0", "false", or "no"."""
    return environ.get(name, "1").strip().lower() not in ("0", "false", "no")
