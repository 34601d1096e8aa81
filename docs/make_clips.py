"""Write the tables and the filmstrip of docs/clips.md: street-grid over clips of 30 frames.

    python docs/make_clips.py [CLIPS]

Runs 20 clips, unless another number is given, into runs/clips-CLIPS: 12 CPU minutes for 20.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
from parts import write_part

import stormproof
from stormproof.core.randomness import Frame
from stormproof.report.imagery import Imagery, RunPredictions
from stormproof.report.sections.clips import FRAMES, liveliest, row
from stormproof.results.interval import Interval, interval_around
from stormproof.results.scores import Scores

HERE = Path(__file__).parent
NOISE = "gaussian_noise[sigma=0.04]"
PAIRS = {  # as a camera sees it, and the other way
    "rain": ("rain@4", "rain@4[owner=frame]"),
    "noise": (NOISE, "gaussian_noise[owner=camera,sigma=0.04]"),
    "dirt": ("spatter@4", "spatter@4[owner=frame]"),
}
MEASURES = ("found", "flicker", "fragments", "jitter", "centre error", "shape error")


def main() -> None:
    clips = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    out, data = HERE.parent / "runs" / f"clips-{clips}", f"world:test,clips={clips},frames=30"
    conditions = [text for pair in PAIRS.values() for text in pair]
    run = stormproof.run("builtin:street-grid", data, out=out, conditions=conditions)
    scores = run.score(interval=True)
    write_part(
        HERE / "clips.md", "table", f"{scores.clips} clips, {scores.images} frames.\n\n{table(scores)}"
    )
    write_part(HERE / "clips.md", "change", changes(scores))
    cv2.imwrite(str(HERE / "clips.webp"), picture(run, scores)[..., ::-1], [cv2.IMWRITE_WEBP_QUALITY, 80])


def table(scores: Scores) -> str:
    lines = [f"| condition | AP | {' | '.join(MEASURES)} |", f"|---|---|{'---|' * len(MEASURES)}"]
    for text in ("clean", *(text for pair in PAIRS.values() for text in pair)):
        cells = [shown(scores.interval(text, name), name) for name in ("AP", *MEASURES)]
        lines.append(f"| `{text}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def shown(found: Interval, name: str) -> str:
    scale, digits = (1, 2) if name == "fragments" else (100, 1)
    if np.isnan(found.estimate):
        return "–"
    return f"{scale * found.estimate:.{digits}f} ± {scale * found.half_width:.{digits}f}"


def changes(scores: Scores) -> str:
    """Flicker frame by frame against clip by clip: the paired difference over clips."""
    lines = [
        "| | clip by clip | frame by frame | change of flicker | 95 % interval |",
        "|---|---|---|---|---|",
    ]
    drawn = scores.spread("flicker")
    for name in ("rain", "noise", "dirt"):
        pair = PAIRS[name] if name != "noise" else PAIRS[name][::-1]
        ours, theirs = (scores.per_condition["flicker"][text] for text in pair)
        change = interval_around(theirs - ours, drawn[pair[1]] - drawn[pair[0]], images=scores.units)
        lines.append(
            f"| {name} | {100 * ours:.1f} | {100 * theirs:.1f} | {100 * change.estimate:+.1f} "
            f"| {100 * change.low:+.1f} to {100 * change.high:+.1f} |"
        )
    return "\n".join(lines)


def picture(run: stormproof.Run, scores: Scores) -> np.ndarray:
    """Six frames of a clip: clean, in rain, with noise, through dirt."""
    frames: dict[str, Frame] = dict(run.dataset.frames)
    texts = ("clean", *(pair[0] for pair in PAIRS.values()))
    seen = RunPredictions(scores, Imagery(run.dataset, run.record.seed), frozenset(frames))
    images = liveliest(seen, frames, texts[1:])
    assert len(images) == FRAMES
    rows = [row(seen, images, text)[0] for text in texts]
    gap = np.full((6, rows[0].shape[1], 3), 255, np.uint8)
    return np.vstack([part for each in rows for part in (each, gap)][:-1])


if __name__ == "__main__":
    main()
