"""A browser's requests to `stormproof explore`, and the run that it shows."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from helpers.scored_models import MODELS

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
