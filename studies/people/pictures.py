"""Curves and worst images of one detector, from a run (*pezzementi*, Figs. 5 and 6).

    stormproof run --model builtin:street-grid --data world:test,count=500 --out RUN \\
        --conditions 'haze[beta=0.012],haze[beta=0.04],gaussian_blur[sigma=1],defocus[focus=2,kappa=2.8]'
    python studies/people/pictures.py RUN
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import altair
import numpy as np
from PIL import Image, ImageDraw

from stormproof.core.sample import Floats
from stormproof.corruptions import apply
from stormproof.metrics.roc import People
from stormproof.results.people import PeopleRun, open_people
from stormproof.results.run import Run

HERE = Path(__file__).resolve().parent
FPPI = 0.1  # the sensitivity of the pictures, false positives per clean image
SHOWN = ("gaussian_blur[sigma=1]", "haze[beta=0.012]")
WORST = 2  # images of each
TRUE, FOUND = (70, 220, 90), (60, 110, 255)


def curves(people: PeopleRun) -> Any:
    rows = []
    for condition in people.found:
        curve = people.curve(condition)
        held = np.flatnonzero((curve.fppi >= 1e-3) & (curve.fppi <= 1))
        rows += [
            {"condition": condition, "fppi": float(curve.fppi[k]), "rate": float(curve.detection_rate[k])}
            for k in held[:: max(1, len(held) // 150)].tolist()
        ]
    order = altair.Scale(domain=list(people.found), scheme="tableau10")
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_line(interpolate="step-after")
        .encode(
            x=altair.X("fppi:Q", scale=altair.Scale(type="log"), title="false positives per image"),
            y=altair.Y("rate:Q", scale=altair.Scale(domain=[0, 1]), title="detection rate, IoU 0.5"),
            color=altair.Color("condition:N", scale=order, title=None),
        )
        .properties(width=420, height=280)
        .configure(font="sans-serif")
    )


def worst(people: PeopleRun) -> Image.Image:
    """Clean on the left, mutated on the right: true people in green, found ones in blue."""
    least = people.found["clean"].sensitivities(np.ones((1, len(people.run.readable))))[0, 2, -1]
    lines = []
    for condition in SHOWN:
        for each in people.worst(condition, count=WORST):
            at = people.run.ids.index(each.id)
            sample = people.run.dataset[people.run.readable[at]]
            pairs = ((sample.image, "clean"), (apply(sample, condition).image, condition))
            lines.append(np.hstack([_drawn(image, people.at(text), at, least) for image, text in pairs]))
    return Image.fromarray(np.vstack(lines))


def _drawn(image: Any, people: People, at: int, least: float) -> Any:
    picture = Image.fromarray(image)
    pen = ImageDraw.Draw(picture)
    truth, found = people.truth, people.found
    for box in truth.boxes[(truth.image == at) & ~truth.excused]:
        pen.rectangle(_corners(box, 2), outline=TRUE)
    for box in found.boxes[(found.image == at) & (found.scores >= least)]:
        pen.rectangle(_corners(box, 0), outline=FOUND, width=2)
    return np.asarray(picture)


def _corners(box: Floats, margin: int) -> tuple[float, float, float, float]:
    x1, y1, x2, y2 = map(float, box)
    return x1 - margin, y1 - margin, x2 + margin, y2 + margin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", type=Path)
    people = open_people(Run(parser.parse_args().run))
    curves(people).save(HERE / "roc.svg")
    worst(people).save(HERE / "worst.jpg", quality=88)


if __name__ == "__main__":
    main()
