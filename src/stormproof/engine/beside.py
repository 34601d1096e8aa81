"""Processes beside the one that holds the model, which must not share its interpreter with their work.

Each is a fresh interpreter, since a process that uses a GPU cannot be forked, and imports only the module of
the function that it runs. It ends with the process that started it, however that ends. Messages are pickled;
the bytes of large arrays travel beside the pickle, uncopied.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

_LARGE = 1 << 12  # bytes of an array that is not copied into the pickle
_AT_ONCE = 512  # pieces in one system call; Linux takes 1,024
_PATIENCE = 5.0  # seconds that a process may take to end once nobody listens to it
_PR_SET_PDEATHSIG = 1  # of sys/prctl.h
_SCRIPT = "import sys; sys.path[:] = {}; from stormproof.engine.beside import serve; serve({}, {})"


class Line:
    """One end of the connection between two processes."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, message: object) -> None:
        large: list[memoryview] = []

        def keep(buffer: pickle.PickleBuffer) -> bool:
            """Whether a buffer goes into the pickle."""
            view = buffer.raw()
            if view.nbytes >= _LARGE:
                large.append(view)
            return view.nbytes < _LARGE

        text = pickle.dumps(message, 5, buffer_callback=keep)
        sizes = [len(text), *(view.nbytes for view in large)]
        parts = [memoryview(struct.pack(f"<{1 + len(sizes)}Q", len(sizes), *sizes) + text), *large]
        while parts:
            count = self._end.sendmsg(parts[:_AT_ONCE])
            while parts and count >= parts[0].nbytes:
                count -= parts.pop(0).nbytes
            if count:
                parts[0] = parts[0][count:]

    def receive(self) -> Any:
        """The next message; EOFError if the other process has ended."""
        (count,) = struct.unpack("<Q", self._take(8))
        sizes = struct.unpack(f"<{count}Q", self._take(8 * count))
        text, *large = map(self._take, sizes)
        return pickle.loads(text, buffers=large)

    def has_message(self) -> bool:
        return bool(select.select([self._end], [], [], 0)[0])

    @property
    def is_closed(self) -> bool:
        return self._end.fileno() < 0

    def close(self) -> None:
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for a message
        self._end.close()

    def _take(self, size: int) -> memoryview:
        whole = np.empty(size, np.uint8).data  # not zeroed, as a bytearray would be
        rest = whole
        while rest:
            count = self._end.recv_into(rest, 0, socket.MSG_WAITALL)
            if not count:
                raise EOFError("The other process has ended.")
            rest = rest[count:]
        return whole


class Beside(Line):
    """A process that runs `function(line, *arguments)`."""

    def __init__(self, function: Callable[..., None], *arguments: object) -> None:
        own, other = socket.socketpair()
        super().__init__(own)
        script = _SCRIPT.format([place for place in sys.path if place], other.fileno(), os.getpid())
        nothing = subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", script], pass_fds=[other.fileno()], stdin=nothing, stdout=nothing,
                stderr=nothing, start_new_session=True,  # Ctrl-C is for the process that started it
            )  # fmt: skip
        finally:
            other.close()
        self.send((function, arguments))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self.is_closed or self._process.poll() is not None

    def end(self) -> None:
        """End the process, which learns of it when it next listens or answers."""
        self.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def end_all(processes: Sequence[Beside]) -> None:
    """End several processes at once."""
    for process in processes:
        process.close()
    for process in processes:
        process.end()


def is_possible() -> bool:
    """Whether there may be processes beside this one."""
    return bool(sys.executable) and sys.platform != "win32"


def serve(descriptor: int, parent: int) -> None:
    """The whole life of a process beside."""
    _end_with(parent)
    line = Line(socket.socket(fileno=descriptor))
    with suppress(EOFError, OSError):
        function, arguments = line.receive()
        function(line, *arguments)


def _end_with(parent: int) -> None:
    """Have this process killed with its parent, at once: it must not write a part when another run may have
    begun. Elsewhere than on Linux it ends when it finds its line closed."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # which ended before this was said
        os._exit(1)
