from __future__ import annotations

import subprocess
import sys

import pytest

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.storage import open_location
from torch_tb_profiler.storage.drivers import driver_options, without_secrets


def test_the_address_of_an_azure_account_names_its_container() -> None:
    url, options = driver_options("https://acme.blob.core.windows.net/traces/a/b?sv=1&sig=xyz", {})
    assert url == "az://traces/a/b"
    assert (options["account_name"], options["sas_token"]) == ("acme", "sv=1&sig=xyz")
    _, options = driver_options("az://traces/a", {"AZURE_STORAGE_CONNECTION_STRING": "x=y"})
    assert options["connection_string"] == "x=y"


@pytest.mark.parametrize(
    ("endpoint", "secure", "address"),
    [
        ("minio:9000", "0", "http://minio:9000"),
        ("minio:9000", "1", "https://minio:9000"),
        ("http://minio:9000", "1", "http://minio:9000"),
    ],
)
def test_an_s3_endpoint_with_or_without_scheme(endpoint: str, secure: str, address: str) -> None:
    environ = {"S3_ENDPOINT": endpoint, "S3_USE_HTTPS": secure, "S3_VERIFY_SSL": "0", "AWS_REGION": "eu-1"}
    _, options = driver_options("s3://bucket/x", environ)
    assert options["client_kwargs"] == {"endpoint_url": address, "region_name": "eu-1", "verify": False}
    assert options["use_ssl"] is (secure == "1")
    assert "key" not in options


def test_secrets_of_an_address_are_not_shown() -> None:
    assert without_secrets("https://me:pw@host/a/b?sig=xyz#f") == "https://host/a/b"
    location = open_location("https://me:pw@host/a/b?sig=xyz")
    assert (location.label, location.name) == ("https://host/a/b", "b")
    assert "sig" not in location.uri("w.json")


def test_a_missing_driver_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['s3fs'] = None\n"
        "from torch_tb_profiler.cli import main; sys.exit(main(['list', 's3://bucket/x']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert 'hint: pip install "torch-tb-profiler[s3]"' in done.stderr


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(StorageError, match="nonsense://"):
        open_location("nonsense://x/y").scan()
