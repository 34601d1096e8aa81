"""Which kernels were found equal to their twins on this machine: the next process need not compare them.

What was found is kept in the user's cache folder, in one file for each device, version of torch, version of
Triton and text of the kernels and twins. A file is replaced as a whole: whoever reads it sees one state or
the other. If two processes write at once, one may lose what the other found, and it is compared again. Triton
keeps the compiled kernels themselves.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Hashable, Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from stormproof.core.files import whole_file

log = logging.getLogger(__name__)


def remembers(name: Hashable) -> bool:
    """Whether a kernel was found equal before, on the current device."""
    return _on_gpu() and repr(name) in _known(_file())


def remember(name: Hashable) -> None:
    """Keep it for other processes; a folder that cannot be written to is no fault."""
    if not _on_gpu():
        return
    file = _file()
    names = _known(file)
    names.add(repr(name))
    names |= _read(file)  # what others have found since
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file, durable=False) as new:
            new.write("".join(f"{one}\n" for one in sorted(names)).encode())
    except OSError as error:
        log.debug("%s is not written: %s", file, error)


def _on_gpu() -> bool:
    return torch.cuda.is_available()  # not so where tests run kernels in an interpreter


@cache
def _known(file: Path) -> set[str]:
    return _read(file)


def _read(file: Path) -> set[str]:
    try:
        return set(file.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return set()


def _file() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "stormproof" / "kernels" / f"{_identity(torch.cuda.current_device())}.txt"


@cache
def _identity(device: int) -> str:
    try:
        triton = version("triton")
    except PackageNotFoundError:
        triton = ""
    chip = torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device), torch.version.cuda
    here = Path(__file__).parent
    return identity((chip, torch.__version__, triton), (*here.glob("*.py"), here.parent / "plans.py"))


def identity(machine: object, sources: Iterable[Path]) -> str:
    """A hash of all that the kernels' results may depend on."""
    digest = hashlib.sha256(repr(machine).encode())
    for source in sorted(sources):
        text = source.read_bytes()
        digest.update(f"{source.name} {len(text)} ".encode() + text)
    return digest.hexdigest()[:32]
