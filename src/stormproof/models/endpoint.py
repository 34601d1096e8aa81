"""A model behind HTTP: `http://host:port/path` or `https://…`; the protocol is in docs/models.md.

GET describes the model, POST predicts. The query and the user part of an address may hold a key or a password
and are never stored or shown; `${NAME}` in them stands for a variable of the environment. A server may be
slow, wrong or hostile without stopping the run: a whole call has a time limit, retries wait longer each time,
the size of a response is bounded, and redirects to another host are refused.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

import numpy as np
import PIL.Image

from stormproof.core.errors import InvalidImage, InvalidOption, ModelError
from stormproof.core.imagefile import open_image
from stormproof.core.private import without_secrets
from stormproof.core.sample import Image, Prediction
from stormproof.models.model import ADAPTERS, fingerprint
from stormproof.models.predictions import read_predictions

_RETRIED = frozenset({429, 500, 502, 503, 504})
# Raised for a malformed status line, header, chunk, length or address; http.client has its own exceptions.
_BROKEN = (OSError, http.client.HTTPException, ValueError, OverflowError)
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SHORTEST = 3  # characters of a secret: replacing shorter ones would garble errors
_DESCRIBES = "GET must describe the model, at least by its name: docs/models.md has the protocol."
_PAUSE = 0.5  # seconds before the first retry; doubled each time


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects only within one host, so that images and tokens go nowhere else."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            here, there = without_secrets(req.full_url), without_secrets(newurl)
            raise ModelError(f"{here} redirects to {there}, another host; use that address if you trust it.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Deadline:
    """Closes the connections of one call when its time is up.

    A socket's own timeout restarts with every byte, so a server that sends bytes slowly would never time out.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._open: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def watch(self, connection: socket.socket) -> None:
        self._open.append(connection)
        if self.passed:
            self._end()

    def _end(self) -> None:
        self.passed = True
        for connection in self._open:
            with contextlib.suppress(OSError):  # already closed
                connection.shutdown(socket.SHUT_RDWR)


def _opener(deadline: _Deadline) -> urllib.request.OpenerDirector:
    """An opener whose connections the deadline watches."""

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            deadline.watch(self.sock)

    class Secure(Plain, http.client.HTTPSConnection):
        pass

    class Handler(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
        def http_open(self, req: Any) -> Any:
            return self.do_open(Plain, req)

        def https_open(self, req: Any) -> Any:
            return self.do_open(Secure, req)

    return urllib.request.build_opener(_SameHost, Handler)


@dataclass(frozen=True, slots=True)
class Client:
    """Requests to one address, with retries; `limit` is the largest response in bytes.

    `url` has no user part; `secrets` are the texts that no error may repeat, even if the server does.
    """

    url: str
    timeout: float
    retries: int
    limit: int
    authorization: str | None = None
    secrets: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The address as errors name it: its query may hold a key."""
        return self.url.partition("?")[0]

    def hidden(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return without_secrets(text)

    def ask(self, question: Mapping[str, object] | None = None) -> Any:
        """The JSON response to a POST of `question`, or to a GET if there is none."""
        for attempt in range(self.retries + 1):
            with _Deadline(self.timeout) as deadline:
                try:
                    return self._parse(self._once(question, deadline))
                except urllib.error.HTTPError as error:
                    if error.code not in _RETRIED or attempt == self.retries:
                        said = f"{self.shown} answered {error.code} {error.reason}{_body(error)}"
                        fix = "" if question else f"; {_DESCRIBES}"
                        raise ModelError(self.hidden(said + fix)) from None
                except ModelError:
                    raise
                except _BROKEN as error:
                    if attempt == self.retries:
                        cause = getattr(error, "reason", error)
                        said = f"{str(cause) or type(cause).__name__:.200}"
                        reason = "no complete response in time" if deadline.passed else said
                        tries = f"{self.retries + 1} tries of {self.timeout:g} s"
                        raise ModelError(
                            self.hidden(f"{self.shown} cannot be reached: {reason} ({tries}).")
                        ) from None
            time.sleep(_PAUSE * 2**attempt)
        raise AssertionError

    def _once(self, question: Mapping[str, object] | None, deadline: _Deadline) -> bytes:
        body = None if question is None else json.dumps(question).encode()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.authorization:
            headers["Authorization"] = self.authorization
        request = urllib.request.Request(self.url, body, headers)
        with _opener(deadline).open(request, timeout=self.timeout) as response:
            content: bytes = response.read(self.limit + 1)
            promised = response.headers.get("Content-Length", "")
        if promised.isdecimal() and len(content) < min(int(promised[:18]), self.limit):
            raise http.client.IncompleteRead(content)
        if deadline.passed:
            raise TimeoutError
        if len(content) > self.limit:
            fix = "raise it with limit_mb=…"
            raise ModelError(f"{self.shown} sent more than {self.limit / 1e6:g} MB; {fix}.")
        return content

    def _parse(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{self.shown} sent something that is not JSON: {error}.") from None


def _body(error: urllib.error.HTTPError) -> str:
    """The beginning of an error response in one line, unless it is a page for browsers."""
    try:
        said = " ".join(error.read(200).decode("utf-8", "replace").split())
    except _BROKEN:
        said = ""
    return f": {said}" if said and not said.startswith("<") else ""


@dataclass(frozen=True, eq=False)
class Endpoint:
    """A model behind HTTP; the server states its name and the version of its weights.

    `address` identifies it: as it was given, with the names of variables instead of their values.
    """

    client: Client
    address: str
    name: str
    classes: tuple[str, ...]
    semantic_classes: tuple[str, ...]
    version: str

    @property
    def fingerprint(self) -> str:
        model = [self.name, self.version, self.classes, self.semantic_classes]
        return fingerprint((), {"url": self.address, "model": model})

    def __call__(self, images: Sequence[Image]) -> Sequence[Prediction]:
        answer = self.client.ask({"images": [{"png": _png(image)} for image in images]})
        found = answer.get("predictions") if isinstance(answer, Mapping) else None
        if not isinstance(found, list):
            raise ModelError(
                f"{self.client.shown} sent no list 'predictions': answer POST with "
                '{"predictions": […]}, one per image; docs/models.md has the protocol.'
            )
        sizes = [(image.shape[0], image.shape[1]) for image in images]
        items = [_with_map(item, self.client.shown) for item in found]
        return read_predictions(items, sizes, self.name, self.classes)


def _opener_of(scheme: str) -> Callable[..., Endpoint]:
    def open_server(
        main: str,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        limit_mb: float = 64.0,
        token_env: str | None = None,
    ) -> Endpoint:
        """Ask a server for its model; `token_env` names the environment variable with the bearer token."""
        return _open(f"{scheme}:{main}", timeout, retries, limit_mb, token_env)

    return open_server


for _scheme in ("http", "https"):
    ADAPTERS.declare(_scheme)(_opener_of(_scheme))


def _open(given: str, timeout: float, retries: int, limit_mb: float, token_env: str | None) -> Endpoint:
    url = _VARIABLE.sub(lambda name: quote(_environment(name[1]), safe=""), given)
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and (parts.port or 1) > 0 and url.isprintable() and " " not in url
    except ValueError:
        named = False
    if not named:  # not shown: it may hold a password
        raise InvalidOption(
            "The address of the model has no host; write http://host:port/path, with / ? # @ in a password "
            "as %2F %3F %23 %40."
        )
    if timeout <= 0 or retries < 0 or limit_mb <= 0:
        raise InvalidOption(
            f"timeout={timeout}, retries={retries}, limit_mb={limit_mb}: they must be positive."
        )
    token = _environment(token_env) if token_env else None
    user, _, host = parts.netloc.rpartition("@")
    if user and token_env:
        raise InvalidOption("Give a user in the address, or token_env=…, not both.")
    address, sent = urlsplit(given), urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
    basic = base64.b64encode(unquote(user).encode()).decode("ascii")
    authorization = f"Bearer {token}" if token else f"Basic {basic}" if user else None
    secrets = _secrets(parts, authorization or "")
    client = Client(sent, timeout, retries, int(limit_mb * 1e6), authorization, secrets)
    stated = client.ask()
    if not isinstance(stated, Mapping) or not isinstance(stated.get("name"), str):
        raise ModelError(f"{client.shown} answered GET without a 'name'; {_DESCRIBES}")
    names = [_names(stated, key, client.shown) for key in ("classes", "semantic_classes")]
    identity = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()
    return Endpoint(client, identity, stated["name"], names[0], names[1], str(stated.get("version", "")))


def _environment(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise InvalidOption(f"The environment variable {name}, which the model's spec names, is not set.")
    return value


def _secrets(parts: SplitResult, authorization: str) -> tuple[str, ...]:
    """The texts that may be secret, the longest first: the query, its values, the user part, the header."""
    user = parts.netloc.rpartition("@")[0]
    texts = {parts.query, user, unquote(user), *unquote(user).split(":"), *authorization.split()[1:]}
    texts |= {one for _, value in parse_qsl(parts.query) for one in (value, quote(value), quote_plus(value))}
    return tuple(sorted((text for text in texts if len(text) > _SHORTEST), key=len, reverse=True))


def _names(stated: Mapping[str, Any], key: str, url: str) -> tuple[str, ...]:
    names = stated.get(key) or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelError(f"{url} answered GET with {key} {names!r:.80}; it must be a list of names.")
    return tuple(names)


def _png(image: Image) -> str:
    """The image as PNG, without loss, in base64."""
    buffer = BytesIO()
    plane = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    PIL.Image.fromarray(plane).save(buffer, "PNG", compress_level=1)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _with_map(item: object, url: str) -> object:
    """A prediction whose semantic map, if there is one, is decoded from a PNG in base64."""
    if not isinstance(item, Mapping) or not isinstance(item.get("semantic"), str):
        return item
    try:
        content = base64.b64decode(item["semantic"], validate=True)
        with open_image(content, f"semantic map from {url}") as image:
            return {**item, "semantic": np.array(image)}
    except (ValueError, InvalidImage) as error:
        raise ModelError(f"{url} sent a semantic map that is not a PNG in base64: {error}") from None
