"""The folder of a cache that nobody has placed is the one that platformdirs names."""

from __future__ import annotations

import platformdirs
import pytest

from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache


@pytest.mark.parametrize("home", ["/data/cache", "/data/cache/", None])
def test_a_cache_without_a_place_is_in_the_users_cache_folder(
    monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", home)
    cache = Cache.from_settings(Settings(cache_dir=""))
    assert cache.place == platformdirs.user_cache_dir("torch-tb-profiler")


def test_a_relative_cache_folder_of_the_environment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the specification of these variables has it: an entry would be wherever a command is called."""
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    before = Cache("", 1).place
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert Cache("", 1).place == before
