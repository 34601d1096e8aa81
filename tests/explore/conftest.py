"""A small run to explore, and a server of it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from engine.scenes import write_scene
from results.conftest import MODELS

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

MODEL = f"{MODELS}:contrast_boxes"
TOKEN = "a-token-of-the-tests"
CONDITIONS = ("fog@1", "fog@3", "gaussian_noise@1", "gaussian_noise@3", "contrast[factor=0.3]")


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Requests as a browser, or an attacker, sends them."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, *, host: str | None = None, method: str = "GET") -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host if host is not None else f"127.0.0.1:{self.port}")
        connection.endheaders()
        response = connection.getresponse()
        made = Answer(response.status, dict(response.getheaders()), response.read())
        connection.close()
        return made

    def ask(self, question: str, **given: object) -> Answer:
        return self.get(f"/{TOKEN}/ask/{question}?{urlencode(given)}")


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
