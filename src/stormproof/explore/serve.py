"""Starts and stops the server: for the command line until it is interrupted, for a notebook beside it."""

from __future__ import annotations

import errno
import ipaddress
import re
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import uvicorn

from stormproof.core.errors import InvalidOption, RunError
from stormproof.explore.app import charting, make_app
from stormproof.explore.desk import Desk
from stormproof.explore.subject import Exploration, explore_models, explore_runs
from stormproof.results.run import Run

LOOPBACK = "127.0.0.1"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
_HEIGHT = 900  # pixels of the frame in a notebook


def open_subjects(
    runs: Sequence[str | PathLike[str]], models: Sequence[str], data: str | None, *, seed: int = 0
) -> Exploration:
    """What a command line names: run folders, or models and a dataset."""
    if runs:
        charting()  # begins, in a process of its own, while the runs are opened
        return explore_runs([Path(run) for run in runs], data=data, models=models)
    if not models or data is None:
        raise InvalidOption("Name a run folder, or give --model and --data.")
    return explore_models(models, data, seed=seed)


class Server:
    """A server of one exploration, bound to a port at once."""

    def __init__(
        self, exploration: Exploration, *, host: str = LOOPBACK, port: int = 0, token: str = "",
        framed: bool = False,
    ) -> None:  # fmt: skip
        if not is_loopback(host) and not token:
            raise InvalidOption(
                f"--host {host}: whoever reaches this machine could open the page. Give --token SECRET as "
                "well; the connection is not encrypted, so others on the network can read along."
            )
        if token and not _TOKEN.fullmatch(token):
            raise InvalidOption("--token: 16 letters or digits at least, - and _ allowed.")
        self._token = token or secrets.token_urlsafe(24)
        self._socket = _listening(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.host = host
        self._desk = Desk(exploration)
        app = make_app(
            self._desk, token=self._token, hosts=self._hosts(), anywhere=is_anywhere(host), framed=framed
        )
        settings = uvicorn.Config(
            app, log_level="error", access_log=False, server_header=False, lifespan="off", ws="none"
        )
        self._server = uvicorn.Server(settings)

    @property
    def link(self) -> str:
        named = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{named}:{self.port}/{self._token}/"

    def __repr__(self) -> str:
        return f"<explore at {self.link}>"

    def _hosts(self) -> frozenset[str]:
        near = is_loopback(self.host) or is_anywhere(self.host)
        names = [LOOPBACK, "localhost", "[::1]"] if near else [self.host]
        names += [socket.gethostname()] if is_anywhere(self.host) else []
        names += [f"[{self.host}]"] if ":" in self.host else []
        return frozenset(f"{name}:{self.port}".lower() for name in names)

    def prepare(self) -> None:
        """Have ready what the first page shows: whoever is given the link then does not wait."""
        self._desk.prepare()
        if any(subject.run is not None for subject in self._desk.exploration.subjects):
            charting().exception()  # waits; the page tells of an error

    def run(self) -> None:
        """Serve until interrupted."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Serve in a thread, until the process ends or `stop` is called."""
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_anywhere(host: str) -> bool:
    """Whether a server listens on every address of its machine.

    >>> is_anywhere("0.0.0.0"), is_anywhere("::"), is_anywhere("192.168.1.5")
    (True, True, False)
    """
    return host in ("0.0.0.0", "::")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        is_elsewhere = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        fix = f"choose another {'--host' if is_elsewhere else '--port'}"
        raise RunError(f"Cannot listen on {host}:{port}: {error.strerror}; {fix}.") from None
    made.listen()
    return made


def open_browser(link: str) -> bool:
    """Open the page in the user's browser, if there is one."""
    try:
        return webbrowser.open(link)
    except webbrowser.Error:
        return False


def explore_here(run: Run, say: Callable[[str], Any] = print) -> Any:
    """Show a run in the cell of a notebook; without one, print the link. Returns the server."""
    exploration = explore_runs([run.folder], data=run.dataset)
    server = Server(exploration, framed=True)
    server.start()
    try:
        import IPython
        from IPython import display as shown
    except ImportError:
        say(server.link)
        return server
    if IPython.get_ipython() is None:
        say(server.link)
    else:
        frame = shown.IFrame(server.link, width="100%", height=_HEIGHT)
        shown.display(frame)  # type: ignore[no-untyped-call]
    return server
