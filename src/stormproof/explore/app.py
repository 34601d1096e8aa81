"""The server: who may ask, and which question goes where.

Only its user: every address begins with a random token, the Host header must name this server (so that a
name that is rebound to this machine gets nothing), and a strict content policy keeps the page to itself.
Files are sent from a list made at the start; no path of a request is ever opened. Every request only reads.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, StormproofError
from stormproof.core.text import json_safe
from stormproof.explore.desk import Desk, Dropped
from stormproof.explore.storms import asked_condition, steps
from stormproof.report.charts import THEMES, config
from stormproof.report.vega import charting_script

PAGE = "index.html"
_KINDS = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
_OF_REPORT = ("style.css", "drawing.js", "sizing.js")  # what the page shares with the report
VEGA = "vega.js"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors {}"
)
FRAMES = "http://localhost:* http://127.0.0.1:*"  # notebooks of this machine
_LONGEST = 2000  # characters of a parameter
_MOST = 400  # images of a window of a cell

Answer = Callable[[Desk, "Asked"], Response]


class Asked:
    """The parameters of a request, each read as what it must be."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def text(self, name: str, default: str = "") -> str:
        value = self._given.get(name, default)
        if len(value) > _LONGEST:
            raise InvalidOption(f"{name} has {len(value)} characters; {_LONGEST} is the most.")
        return value

    def number(self, name: str, default: int = 0) -> int:
        value = self.text(name, str(default))
        if not value.isascii() or not value.isdigit() or len(value) > 12:
            raise InvalidOption(f"{name}={value!r:.40}: give a whole number.")
        return int(value)

    def share(self, name: str, default: float) -> float:
        value = self.text(name, str(default))
        try:
            number = float(value)
        except ValueError:
            raise InvalidOption(f"{name}={value!r:.40}: give a number from 0 to 1.") from None
        if not 0 <= number <= 1:
            raise InvalidOption(f"{name}={value!r:.40}: give a number from 0 to 1.")
        return number

    def parameters(self, name: str) -> dict[str, int | float | str]:
        """Parameters of a corruption, as JSON."""
        try:
            held = json.loads(self.text(name) or "{}")
        except ValueError:
            held = None
        if not isinstance(held, dict):
            raise InvalidOption(f"{name} must be a JSON object of parameters.")
        return held

    def condition(self, desk: Desk) -> Condition:
        return asked_condition(self.text("condition", "clean"), desk.known_conditions())


def _json(content: Any) -> Response:
    body = json.dumps(json_safe(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(body, media_type="application/json")


def _session(desk: Desk, _: Asked) -> Response:
    themes = {name: {**config(name), "colours": THEMES[name]} for name in THEMES}
    return _json({**desk.session(), "themes": themes})


def _cell(desk: Desk, asked: Asked) -> Response:
    filters = {name: asked.text(name) for name in ("class", "slice", "error", "fate")}
    return _json(
        desk.cell(
            asked.number("subject"), asked.condition(desk), filters=filters,
            score=asked.share("score", 0.3), first=asked.number("first"),
            count=min(_MOST, asked.number("count", 60)),
        )
    )  # fmt: skip


def _look(desk: Desk, asked: Asked) -> Response:
    require = desk.turns.begin(asked.text("page"), asked.number("turn"))
    return _json(desk.look(asked.number("image"), asked.condition(desk), require))


def _picture(desk: Desk, asked: Asked) -> Response:
    require = desk.turns.begin(asked.text("page"), asked.number("turn"))
    content = desk.picture(asked.number("image"), asked.condition(desk), require)
    return Response(content, media_type="image/png")


def _thumbnail(desk: Desk, asked: Asked) -> Response:
    return Response(desk.thumbnail(asked.number("image"), asked.condition(desk)), media_type="image/webp")


def _painting(desk: Desk, asked: Asked) -> Response:
    content = desk.painting(asked.number("subject"), asked.number("image"), asked.condition(desk))
    return Response(content, media_type="image/png")


def _steps(desk: Desk, asked: Asked) -> Response:
    live = any(subject.live is not None for subject in desk.exploration.subjects)
    known, name = desk.known_conditions(), asked.text("corruption")
    top = asked_condition(asked.text("top", "clean"), known)
    return _json(steps(name, asked.parameters("params"), known, live=live, top=top))


def _acts(desk: Desk, asked: Asked) -> Response:
    row: dict[str, Any] = {}
    if asked.text("metric"):
        try:
            threshold = float(asked.text("threshold", "0.5"))
        except ValueError:
            threshold = math.nan
        row = {"id": asked.text("id", "R1"), "metric": asked.text("metric"),
               asked.text("bound", "at_least"): threshold}  # fmt: skip
    return _json(desk.acts(asked.number("subject"), asked.number("image"), asked.condition(desk), row))


def _table(desk: Desk, asked: Asked) -> Response:
    return Response(desk.table(asked.number("image"), asked.condition(desk)), media_type="text/csv")


ANSWERS: dict[str, Answer] = {
    "session": _session,
    "progress": lambda desk, _: _json(desk.progress()),
    "map": lambda desk, asked: _json(desk.map(asked.text("measure"))),
    "cell": _cell,
    "slices": lambda desk, asked: _json(desk.slices(asked.text("name"))),
    "tallies": lambda desk, asked: _json(desk.tallies(asked.number("subject"), asked.condition(desk))),
    "steps": _steps,
    "look": _look,
    "picture": _picture,
    "thumbnail": _thumbnail,
    "painting": _painting,
    "acts": _acts,
    "table": _table,
}


def make_app(
    desk: Desk, *, token: str, hosts: frozenset[str], anywhere: bool = False, framed: bool = False
) -> ASGIApp:
    """The application; `hosts` are the values of the Host header that name this server, and any address does
    if it listens `anywhere`."""
    held = _static_files()

    async def send_file(request: Request) -> Response:
        name = request.path_params.get("name", PAGE)
        if name == VEGA and name not in held:
            try:
                held[name] = (await run_in_threadpool(charting().result)).encode()
            except StormproofError as error:
                return Response(str(error), 503)
        content = held.get(name)
        if content is None:
            return Response("There is no such file.", 404)
        return Response(content, media_type=_KINDS[name[name.rindex(".") :]])

    async def answer(request: Request) -> Response:
        chosen = ANSWERS.get(request.path_params["question"])
        if chosen is None:
            return Response("There is no such question.", 404)
        try:
            return await run_in_threadpool(chosen, desk, Asked(request.query_params))
        except Dropped:
            return Response(status_code=204)
        except StormproofError as error:
            made = _json({"error": str(error)})
            made.status_code = 400
            return made

    routes = [
        Route(f"/{token}/", send_file),
        Route(f"/{token}/ask/{{question}}", answer),
        Route(f"/{token}/{{name}}", send_file),
    ]
    policy = _POLICY.format(FRAMES if framed else "'none'")
    return Guard(Starlette(routes=routes), token=token, hosts=hosts, anywhere=anywhere, policy=policy)


@cache
def charting() -> Future[str]:
    """The script that draws charts. It takes a process some seconds, so call this before anyone needs it."""
    made: Future[str] = Future()

    def work() -> None:
        try:
            made.set_result(charting_script())
        except Exception as error:  # whoever asks for the answer hears of it
            made.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return made


def _static_files() -> dict[str, bytes]:
    """Our own files, by name: the only ones that are ever sent."""
    own = {
        entry.name: entry.read_bytes() for entry in files("stormproof.explore").joinpath("static").iterdir()
    }
    shared = files("stormproof.report").joinpath("templates")
    return own | {name: shared.joinpath(name).read_bytes() for name in _OF_REPORT}


def is_address(host: str) -> bool:
    """Whether a Host header holds an address: unlike a name, nobody can make it lead to another machine.

    >>> is_address("192.168.1.5:8765"), is_address("[::1]:8765"), is_address("127.0.0.1.example:8765")
    (True, True, False)
    """
    try:
        parts = urlsplit(f"//{host}")
        ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        return False
    return parts.netloc == host and "@" not in host  # nothing but the address and a port


class Guard:
    """Lets a request through if it names this server, carries the token and only reads."""

    def __init__(
        self, app: ASGIApp, *, token: str, hosts: frozenset[str], anywhere: bool, policy: str
    ) -> None:
        self._app, self._token, self._hosts, self._anywhere = app, token.encode(), hosts, anywhere
        self._headers = [
            (b"content-security-policy", policy.encode()),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        if refused is not None:
            status, words = refused
            await Response(words, status, headers={"cache-control": "no-store"})(scope, receive, send)
            return

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self._headers]
            await send(message)

        await self._app(scope, receive, send_guarded)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "This server only answers; it takes nothing."
        hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not (hosts[0] in self._hosts or (self._anywhere and is_address(hosts[0]))):
            return 421, "This server has another name."
        first = scope["raw_path"].split(b"/")[1] if scope.get("raw_path") else b""
        if not hmac.compare_digest(first, self._token):
            return 403, "Open the link that 'stormproof explore' printed: it holds a token."
        return None
