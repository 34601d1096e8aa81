"""Style transfer: one image, a sequence over α, on one core; bars in seconds of CPU time.

python benchmarks/style.py
"""

from __future__ import annotations

import sys
import time

import numpy as np

from stormproof.style.networks import open_network
from stormproof.style.sources import list_styles, read_style
from stormproof.world.samples import render

# Seconds for 640×480; the cost of eleven α in single images. The decoder is two thirds of an image's cost, so
# the second bar is higher than the 6.0 of the network before, with its smaller decoder and larger encoder.
SINGLE, SEQUENCE = 0.7, 8.5
REPEATS = 5


def cpu_seconds(work: object) -> float:
    """The least of several measurements, in CPU time."""
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()  # type: ignore[operator]
        taken.append(time.process_time() - start)
    return min(taken)


def main() -> None:
    image = render(0, "val", 0, width=640, height=480).sample.image
    style, network = read_style(next(iter(list_styles().values()))), open_network()

    def single() -> None:
        network.paint(network.encode_content(image), network.encode_style(style), 1.0)

    def sequence() -> None:
        content, wanted = network.encode_content(image), network.encode_style(style)
        for alpha in np.linspace(0, 1, 11):
            network.paint(content, wanted, float(alpha))

    one, eleven = cpu_seconds(single), cpu_seconds(sequence)
    print(f"640×480, content and style encoded, one core: {one:.3f} s (bar {SINGLE})")
    print(f"eleven α: {eleven:.3f} s, {eleven / one:.2f} single images (bar {SEQUENCE})")
    if one > SINGLE or eleven > SEQUENCE * one:
        sys.exit("a bar was missed")


if __name__ == "__main__":
    main()
