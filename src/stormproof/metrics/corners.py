"""Oriented boxes as a form of truth and predictions: n×4×2 corners x, y in order around each box."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stormproof.core.forms import Form, Motion, form

if TYPE_CHECKING:
    from stormproof.core.sample import Floats
    from stormproof.metrics.oriented import Oriented


def _move(corners: Floats, motion: Motion) -> Floats:
    """Each corner goes with the pixels, beyond the border too: a turned box has no shape once it is cut."""
    moved: Floats = motion.points(corners)
    return moved


def _lines(corners: Floats) -> Iterator[Floats]:
    yield corners[[0, 1, 2, 3, 0]]


def _collect(reader: Any) -> Iterator[tuple[str, Oriented]]:
    from stormproof.metrics.oriented import Oriented  # late: a run needs no input of metrics

    for text, truth, found in reader.objects(forms=("corners",)):
        yield text, Oriented(truth, found, reader.rule)


CORNERS = form(
    Form(
        "corners", "oriented boxes", shape=(4, 2), move=_move, lines=_lines, inputs=("oriented",),
        collect=_collect,
    ),
    __name__,
)  # fmt: skip
