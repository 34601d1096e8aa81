"""What every test needs: the folder of real data, repeatable property tests, and shortcuts that save time."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer.main
import typer.testing
from filelock import FileLock
from hypothesis import HealthCheck, settings
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from helpers import preloaded
from stormproof.core import registry as registries
from stormproof.core.processes import keep_memory

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("repeatable")

SHARED = Path(__file__).resolve().parents[2] / "shared"
collect_ignore = ["helpers", "programs"]  # --doctest-modules would import them all


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real photographs, labels and networks beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared, the real photographs and networks beside the repository")
    return SHARED


def pytest_configure(config: pytest.Config) -> None:
    """Do once what hundreds of tests would do again. Every patch here saves time and hides nothing.

    Tests of what is patched undo it: `core/test_processes.py` starts pools without `preloaded`, and
    `world/conftest.py` composes scenes anew.
    """
    gc.disable()  # until everything is imported: see `pytest_collection_finish`
    keep_memory()  # as every command does
    # Typer builds all commands for each call, which takes longer than many of the calls.
    typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)
    # Thousands of small files are written and no test cuts the power, so none is flushed to disk.
    os.fsync = lambda _: None
    preloaded.fork_workers()
    if hasattr(config, "workerinput"):  # a process of pytest-xdist
        _compile_once()


def _compile_once() -> None:
    """Let one worker compile a kernel while the others wait: otherwise, each would compile it.

    Numba has no hook for this, so a method of it is replaced. A kernel is locked before those it calls. No
    kernel calls itself, even indirectly, so workers cannot block each other.
    """
    compile_it = Dispatcher.compile

    def compile_once(self: Any, signature: Any) -> Any:
        if self._cache.cache_path is None:
            return compile_it(self, signature)
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}.lock"
        with global_compiler_lock, FileLock(Path(self._cache.cache_path) / name):
            return compile_it(self, signature)

    Dispatcher.compile = compile_once


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on the real photographs and networks are slow ones, which `make test-core` leaves out.

    Modules are shared out to the processes of pytest-xdist in turn, those with most slow tests first:
    fixtures of a module are made once, and at the end only quick tests are left to share.
    """
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and "shared" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
        modules.setdefault(item.path, []).append(item)
    slowest = sorted(modules.values(), key=lambda module: -sum("slow" in item.keywords for item in module))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = chain.from_iterable(
            module for first in range(workers) for module in slowest[first::workers]
        )


def pytest_collection_finish() -> None:
    """Keep what hundreds of tests would make again, now that everything is imported."""
    # A scene of the world is the same at every size of its image; tests look at a few of them very often.
    if samples := sys.modules.get("stormproof.world.samples"):
        samples.compose = lru_cache(maxsize=32)(samples.compose)  # type: ignore[attr-defined]
    # Modules and tests stay until the end: looking through them for garbage takes longer than many tests.
    gc.freeze()
    gc.enable()


def foreign_things() -> set[tuple[Any, str]]:
    """Everything that modules outside the package have declared: the registry and the name."""
    return {
        (registry, name)
        for registry in registries._EVERY
        for name, module in registry._modules.items()
        if module is None or not module.startswith("stormproof.")
    }


@pytest.fixture(autouse=True)
def no_plugin_stays() -> Iterator[None]:
    """Remove what a test registered: other tests list all corruptions and measures."""
    before = foreign_things()
    yield
    for registry, name in foreign_things() - before:
        registry.remove(name)
