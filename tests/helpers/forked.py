"""Commands as processes forked from one that has loaded everything: real processes, without their start."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.preloaded import Process

MEMORY = 6 << 30  # bytes of address space that a command may use
STUCK = 600  # seconds after which a command is taken to hang: no bar, only an end


COMMAND = "from stormproof.cli import main; main()"
# `python -m NAME …`
MODULE = """
import runpy, sys
del sys.argv[: sys.argv.index("-m") + 1]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def start(
    words: Sequence[str], said: Path, *, code: str = COMMAND, path: str = "", memory: int | None = None
) -> Process:
    """Start a command in its own process group and this folder, with its output in a file.

    It finds modules in the folder `path` before all others. Other `code` is run as by `python -c`.
    """
    # A daemon: should a test fail before it ends, nobody waits for it.
    process = Process(target=_command, args=(words, said, code, Path.cwd(), path, memory), daemon=True)
    process.start()
    return process


def _command(
    words: Sequence[str], said: Path, code: str, folder: Path, path: str, memory: int | None
) -> None:
    os.chdir(folder)
    if path:
        sys.path.insert(0, path)
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    text = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    _become(words, (0, text, text), code)


def _become(words: Sequence[str], streams: Sequence[int], code: str = COMMAND) -> None:
    """Go on as the command; never returns."""
    ended = 70
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  may have workers
    try:
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        sys.argv = ["stormproof", *words]
        from stormproof.core import processes

        processes._WorkerContext = lambda: multiprocessing.get_context("fork")  # type: ignore[assignment,misc]
        processes._kernel_pool = lambda workers, module: processes.worker_pool(workers)
        exec(code, {"__name__": "__main__"})
        ended = 0
    except SystemExit as end:
        ended = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended)


def end(process: Any, patience: float | None = None) -> int | None:
    """The exit code of a process once it has ended; None if it takes longer than `patience` seconds."""
    process.join(patience)
    return process.exitcode


def outcome(
    words: Sequence[str], folder: Path, *, code: str = COMMAND, path: str = "", memory: int | None = None
) -> tuple[int | None, str]:
    """What comes of a command in a folder: its exit code, None if it hung, and what it said."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place, chdir(folder):
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "200")
        said = Path(place) / "said"
        process = start(words, said, code=code, path=path, memory=memory)
        ended = end(process, STUCK)
        if ended is None:
            assert process.pid is not None
            os.killpg(process.pid, signal.SIGKILL)
            end(process)
        return ended, said.read_text(errors="replace")


# A program that has a server run its arguments as a command, in its own folder, environment and streams.
CLIENT = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"!"], [0, 1, 2])
    server.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    sys.exit(server.recv(1)[0])
"""


@contextmanager
def quick_command(code: str = COMMAND) -> Iterator[str]:
    """The text of an executable that is `stormproof`, or runs other code, without its start."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        address = f"{folder}/server"
        listener.bind(address)
        listener.listen()
        server = Process(target=_serve, args=(listener, code), daemon=True)
        server.start()
        yield CLIENT.format(python=sys.executable, address=address)
        server.kill()
        server.join()


def _serve(listener: socket.socket, code: str) -> None:
    """Have a child answer each client, so that one command may start another."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those children
    while True:
        client, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(client, code)
            os._exit(0)
        client.close()


def _answer(client: socket.socket, code: str) -> None:
    """Run the command that a client asks for, and answer with its exit code."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    with client.makefile("rb") as order:
        words, folder, environment = json.load(order)
    process = os.fork()
    if process == 0:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        _become(words, streams, code)
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(process, 0)
    client.sendall(bytes([os.waitstatus_to_exitcode(status) & 255]))
