"""Charts through vl-convert, which runs in a process of its own.

The JavaScript engine in it ends its process, with a native stack, when it cannot reserve memory. In a child
process that is an error with a message.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stormproof.core.errors import RunError

_FIX = "free memory, or raise the limit of address space (ulimit -v), of which vl-convert reserves much"
_PROGRAM = Path(__file__).with_name("vega_process.py")


def draw_charts(specs: Sequence[tuple[str, dict[str, Any]]]) -> list[bytes]:
    """The files of charts, each given as a format (svg, pdf or png) and a Vega-Lite specification."""
    # Vega numbers gradients throughout the process; equal figures must be equal files.
    return [
        re.sub(rb'(url\(#|id=")gradient_\d+', rb"\1gradient", content) if kind == "svg" else content
        for (kind, _), content in zip(specs, _run(specs), strict=True)
    ]


def charting_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; it defines `vegaEmbed`."""
    (script,) = _run([("script", "window.vegaEmbed = vegaEmbed;")])
    return script.decode()


def _run(jobs: Sequence[tuple[str, Any]]) -> list[bytes]:
    """The answers of the program to some jobs."""
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", str(_PROGRAM)]
    try:
        done = subprocess.run(
            command, input=json.dumps(jobs).encode(), capture_output=True, env=os.environ | paths, check=False
        )
    except OSError as error:  # no memory for another process
        raise RunError(f"Charts cannot be drawn: {error.strerror}; {_FIX}.") from None
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise RunError(f"Charts cannot be drawn: the process of vl-convert was ended by {name}; {_FIX}.")
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise RunError(f"Charts cannot be drawn: vl-convert says {lines[-1]!r:.200}.")
    answers, at = [], 0
    while at < len(done.stdout):
        size = int.from_bytes(done.stdout[at : at + 8], "little")
        answers.append(done.stdout[at + 8 : at + 8 + size])
        at += 8 + size
    return answers
