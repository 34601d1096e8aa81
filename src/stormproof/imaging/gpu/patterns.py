"""Patterns laid over an image: they depend on no pixel, so the CPU set makes them on the host."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from stormproof.core.errors import MissingExtra
from stormproof.imaging.gpu.each import BySize, is_mixed


def on_host(module: str, name: str) -> Callable[..., Any]:
    """A function of the CPU set, imported when it is first called; it takes and gives arrays of the host.

    It needs Numba and OpenCV, and waits for the device; docs/gpu.md lists where it is used.
    """

    def call(*args: Any, **options: Any) -> Any:
        if any(is_mixed(given) for given in (args, *args) if isinstance(given, tuple)):
            raise BySize
        try:
            function = getattr(import_module(f"stormproof.imaging.cpu.{module}"), name)
        except ImportError as error:
            needed = f"{error.name or 'OpenCV'}, which {name} on the CPU needs,"
            raise MissingExtra(needed, "pip install numba opencv-python-headless") from error
        return function(*args, **options)

    return call


board = on_host("patterns", "board")
caustic_lens = on_host("patterns", "caustic_lens")
coloured_noise = on_host("patterns", "coloured_noise")
falling = on_host("patterns", "falling")
plane_wave = on_host("patterns", "plane_wave")
rings = on_host("patterns", "rings")
spectrum_shape = on_host("patterns", "spectrum_shape")
stars = on_host("patterns", "stars")
swirl = on_host("patterns", "swirl")
turbulence = on_host("patterns", "turbulence")
