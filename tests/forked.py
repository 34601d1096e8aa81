"""Commands as processes forked from one that has loaded everything: real processes, without their start."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from stormproof.core.kernels import start_kernels

MEMORY = 6 << 30  # bytes of address space that a command may use
STUCK = 600  # seconds after which a command is taken to hang: no bar, only an end
LOADED = (
    "pandas", "pyarrow.parquet", "stormproof.cli", "stormproof.depth",
    "stormproof.tools.corrupted_copies",
    "stormproof.corruptions", "stormproof.datasets.coco", "stormproof.datasets.context",
    "stormproof.engine.many", "stormproof.engine.executors",
    "stormproof.engine.progress", "stormproof.models.python",
    "stormproof.engine.trackers",
)  # fmt: skip


def load(*more: str) -> None:
    """Load what commands load, so that forked ones need not; no thread may start here."""
    for name in (*LOADED, *more):
        import_module(name)
    start_kernels()


def start(words: Sequence[str], said: Path, before: Callable[[], None] | None = None) -> int:
    """Fork a command into its own process group, with its output in a file."""
    process = os.fork()
    if process == 0:
        text = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        _become(words, (0, text, text), before)
    return process


def _become(words: Sequence[str], streams: Sequence[int], before: Callable[[], None] | None) -> None:
    """Go on as the command; never returns."""
    code = 70
    try:
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.argv = ["stormproof", *words]
        from stormproof.cli import main
        from stormproof.core import processes

        processes._WorkerContext = lambda: multiprocessing.get_context("fork")  # type: ignore[assignment,misc]
        processes._kernel_pool = lambda workers, module: processes.worker_pool(workers)
        if before is not None:
            before()
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def end(process: int, patience: float | None = None) -> int | None:
    """The exit code of a child once it has ended; None if it takes longer than `patience` seconds."""
    until = None if patience is None else time.monotonic() + patience
    while True:
        ended, status = os.waitpid(process, 0 if until is None else os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if until is not None and time.monotonic() > until:
            return None
        time.sleep(0.001)


def outcome(words: Sequence[str], memory: int, said: Path) -> tuple[int | None, str]:
    """Run a command within some bytes of address space: its exit code and what it said."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    process = start(words, said, limit)
    code = end(process, STUCK)
    if code is None:
        os.killpg(process, signal.SIGKILL)
        end(process)
    return code, said.read_text(errors="replace")


def outcomes(
    commands: Sequence[Sequence[str]], folder: Path, *, path: str = "", memory: int = MEMORY
) -> list[tuple[int | None, str]]:
    """What comes of commands, one after the other: exit code, None if it hung, and text of each.

    They are forked from a fresh process in `folder`, with `path` before its search path.
    """
    paths = os.pathsep.join(filter(None, (path, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths, "NO_COLOR": "1", "COLUMNS": "200"}
    order = json.dumps({"commands": commands, "memory": memory})
    done = subprocess.run(
        [sys.executable, __file__],
        input=order, capture_output=True, text=True, cwd=folder, env=environment, check=True,
    )  # fmt: skip
    return [(code, text) for code, text in json.loads(done.stdout)]


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
def quick_command() -> Iterator[str]:
    """The text of an executable that is `stormproof`, forked from a fresh process that has loaded it."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/server"
        command = [sys.executable, __file__, address]
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}  # as in CI
        with subprocess.Popen(command, text=True, **piped) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield CLIENT.format(python=sys.executable, address=address)
            server.kill()


def _serve(address: str) -> None:
    """Run the commands that clients ask for, one after the other, and answer with their exit codes."""
    load("stormproof.report.make")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            _, streams, _, _ = socket.recv_fds(client, 1, 3)
            with client, client.makefile("rb") as order:
                words, folder, environment = json.load(order)
                process = os.fork()
                if process == 0:
                    os.chdir(folder)
                    os.environ.clear()
                    os.environ.update(environment)
                    _become(words, streams, None)
                for stream in streams:
                    os.close(stream)
                client.sendall(bytes([(end(process) or 0) & 255]))


def main() -> None:
    if len(sys.argv) > 1:
        _serve(sys.argv[1])
    order = json.load(sys.stdin)
    load()
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        print(json.dumps([outcome(words, order["memory"], said) for words in order["commands"]]))


if __name__ == "__main__":
    main()
