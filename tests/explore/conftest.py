"""A small run to explore, and a server of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.explorer import CONDITIONS, MODEL, TOKEN, Client
from helpers.scenes import write_scene

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_scene(tmp_path_factory.mktemp("explored") / "scene", images=6, size=(96, 128))


@pytest.fixture(scope="session")
def folder(data: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in three parts."""
    from stormproof.engine.config import make_config
    from stormproof.engine.run import run

    out = tmp_path_factory.mktemp("runs") / "explored"
    settings = {"model": MODEL, "data": data, "engine": "local", "chunk": 2, "out": str(out)}
    run(make_config({**settings, "conditions": list(CONDITIONS)}))
    return out


@pytest.fixture(scope="session")
def client(folder: Path) -> Iterator[Client]:
    """A server of the run, whose model the user named again."""
    from stormproof.explore.serve import Server, open_subjects

    server = Server(open_subjects([folder], [MODEL], None), token=TOKEN)
    server.start()
    yield Client(server.port)
    server.stop()
