"""One session over the corpus, which all tests of the surfaces ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.surfaces.asking import Remembering, Surfaces, recall_traces
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root


@pytest.fixture(scope="package")
def surfaces(corpus: Path) -> Iterator[Surfaces]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch_tb_profiler.session.jobs.load_file", recall_traces(corpus))
        settings = Settings(cache_bytes=0, small_file_bytes=1 << 50, memory_bytes=1 << 50)
        with Remembering([Root(str(corpus / "traces"))], settings) as session:
            session.scan()
            assert len(session.catalog.runs) >= 70
            yield Surfaces(session, corpus / "traces")
