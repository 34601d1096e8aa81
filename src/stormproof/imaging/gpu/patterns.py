"""Patterns laid over an image: they depend on no pixel, so the CPU set makes them on the host."""

from __future__ import annotations

from stormproof.imaging.gpu.hosted import on_host

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
