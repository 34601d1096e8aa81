"""Figures of people that need the images themselves (*pezzementi*): whom a mutation loses (Fig. 6), and the
weights of a prediction beside the blur and grey inside people's boxes (Fig. 8)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from stormproof.core.condition import Condition
from stormproof.core.errors import StormproofError
from stormproof.core.sample import Image, as_rgb
from stormproof.core.table import file_name
from stormproof.corruptions import apply
from stormproof.metrics.roc import REFERENCE_FPPI, People, Worsening
from stormproof.report.elements import Axis, Datum, Figure, Kind, View
from stormproof.report.sections.people import PREDICTION
from stormproof.results.people import PeopleRun, histograms, levels, open_people, predict_contextual
from stormproof.results.rows import changes
from stormproof.results.run import Run
from stormproof.tools.drawing import Colour, write_label

SHOWN = 4  # people of a picture
_WEIGHT, _SHARE = "weight of the fit", "share inside people's boxes"
_WIDE = 720  # pixels of each image, at least
_GAP = 6
_TRUE: Colour = (40, 200, 70)
_BEFORE: Colour = (40, 80, 220)
_AFTER: Colour = (215, 35, 35)
_REQUIRED: Colour = (190, 140, 0)


def lost_people(people: PeopleRun, count: int = SHOWN) -> PIL.Image.Image | None:
    """The people hardest to find again, each under the condition that loses them: clean image on the left,
    changed image on the right; none if no condition loses anybody whom a sensitivity of the paper found."""
    shown = [_pair(people, text, one) for text, one in hardest(people, count)]
    if not shown:
        return None
    sheet = PIL.Image.new(
        "RGB", (max(s.width for s in shown), sum(s.height + _GAP for s in shown) - _GAP), "white"
    )
    at = 0
    for picture in shown:
        sheet.paste(picture, (0, at))
        at += picture.height + _GAP
    return sheet


def hardest(people: PeopleRun, count: int) -> list[tuple[str, Worsening]]:
    """Conditions and people, the largest rise of the required FPPI first; a condition and an image come once,
    so that the few that are shown differ. Among equals the smallest change of pixels comes first. Whoever
    takes more false positives on clean images than any sensitivity of the paper allows (and more than one in
    the set) was never found."""
    size = {text: change["rmse"] for text, change in changes(people.run, [*people.found]).items()}
    allowed = max(REFERENCE_FPPI[-1], 1 / len(people.at("clean").truth.ids))
    worse: list[tuple[str, Worsening]] = []
    for text in people.found:
        if text != "clean" and np.array_equal(people.at(text).truth.boxes, people.at("clean").truth.boxes):
            worst = people.worst(text, count=count)
            worse += [(text, one) for one in worst if one.after > one.before and one.before <= allowed]
    chosen: list[tuple[str, Worsening]] = []
    for text, one in sorted(
        worse, key=lambda pair: (-pair[1].orders, size.get(pair[0], math.inf), pair[1].before, pair[1].id)
    ):
        if not any(text == other or one.id == each.id for other, each in chosen):
            chosen.append((text, one))
    return chosen[:count]


def _pair(people: PeopleRun, condition: str, one: Worsening) -> PIL.Image.Image:
    at = people.run.ids.index(one.id)
    sample = people.run.dataset[people.run.readable[at]]
    seed = people.run.record.seed
    changed = apply(sample, Condition.parse(condition), seed=seed, classes=people.run.dataset.classes)
    sides = (
        _drawn(sample.image, people.at("clean"), one.person, one.before, "clean", _BEFORE),
        _drawn(changed.image, people.at(condition), one.person, one.after, condition, _AFTER),
    )
    sheet = PIL.Image.new("RGB", (sum(s.width for s in sides) + _GAP, sides[0].height), "white")
    sheet.paste(sides[0], (0, 0))
    sheet.paste(sides[1], (sides[0].width + _GAP, 0))
    return sheet


def _drawn(
    image: Image, people: People, person: int, required: float, title: str, colour: Colour
) -> PIL.Image.Image:
    """One image: the person in green, the detection that finds them with its score, and the FPPI it takes."""
    factor = max(1, math.ceil(_WIDE / image.shape[1]))
    picture = PIL.Image.fromarray(as_rgb(image))
    picture = picture.resize((picture.width * factor, picture.height * factor), PIL.Image.Resampling.BICUBIC)
    pen, font = PIL.ImageDraw.Draw(picture), PIL.ImageFont.load_default(size=max(16, picture.width // 50))
    truth = [factor * float(v) for v in people.truth.boxes[person]]
    pen.rectangle([truth[0] - 4, truth[1] - 4, truth[2] + 4, truth[3] + 4], outline=_TRUE, width=3)
    finder = people.finder(person)
    words = [(title, (30, 30, 30))]
    if finder is None:
        words.append(("not detected", colour))
    else:
        box = [factor * float(v) for v in people.found.boxes[finder]]
        pen.rectangle(box, outline=colour, width=3)
        words.append((f"score {people.found.scores[finder]:.2f}", colour))
    words.append((required_words(required, len(people.truth.ids)), _REQUIRED))
    height = 1.5 * font.size  # type: ignore[union-attr]
    for k, (text, fill) in enumerate(words):
        write_label(pen, [8, 8 + (k + 1) * height, 0, 0], text, fill, font)
    return picture


def required_words(fppi: float, images: int) -> str:
    """The false positives that a sensitivity must tolerate to find somebody.

    >>> required_words(0.002, 500), required_words(1.5, 500)
    ('needs at most 1 false positive in 500 images', 'needs 1.5 false positives per image')
    """
    if math.isinf(fppi):
        return "found at no sensitivity"
    if fppi * images <= 1:
        return f"needs at most 1 false positive in {images} images"
    return f"needs {fppi:.2g} false positives per image"


def with_distributions(view: View, runs: Sequence[Run]) -> View:
    """The view with Fig. 8 in the section of predictions: the weights of the fit beside the shares of blur or
    grey inside people's boxes. Without depth, predictions or a run (published scores), it stays as it is."""
    if not runs:
        return view
    try:
        opened = [open_people(run) for run in runs]
        figures = distributions(opened)
    except StormproofError:  # such as a dataset without depth, or runs without people
        return view
    sections = [
        replace(s, figures=(*s.figures, *figures)) if s.id == PREDICTION else s for s in view.sections
    ]
    return replace(view, sections=tuple(sections))


def distributions(people: Sequence[PeopleRun]) -> list[Figure]:
    """For each contextual condition, bars over the magnitudes of the simple mutator: the weight that predicts
    it, and the share of the pixels of people's boxes with that magnitude; a figure for each mutator."""
    inside, figures = histograms(people[0]), []
    for contextual, fit in predict_contextual(people).items():
        magnitudes = [_magnitude(text) for text in fit.simple]
        rows: list[Datum] = []
        for text, weights in zip(fit.contextual, fit.overall.tolist(), strict=True):
            rows += _bars(_WEIGHT, text, contextual, dict(zip(magnitudes, weights, strict=True)))
            rows += _bars(_SHARE, text, contextual, dict(zip(levels(contextual), inside[text], strict=True)))
        figures.append(
            Figure(
                f"distributions-{contextual}", f"Weights that predict {contextual}, and people's boxes",
                Kind.BARS, Axis("magnitude of the simple mutator", names=True),
                Axis("weight, or share", zero=True), sorted(rows, key=lambda row: row["magnitude"]),
                series="distribution", panel="condition", cite="pezzementi, Fig. 8",
                note="Weights of the fit on all models. Shares of the pixels inside people's boxes whose "
                "blur (σ) or grey (α) is nearest to the magnitude, every person once; at 0 they are as in "
                "the clean image.",
            )
        )  # fmt: skip
    return figures


def _bars(series: str, panel: str, contextual: str, values: Mapping[float, float]) -> list[Datum]:
    sign = "σ" if contextual == "defocus" else "α"
    return [
        {"x": f"{sign} {at:g}", "y": float(v), "series": series, "panel": panel, "magnitude": at}
        for at, v in values.items()
    ]


def _magnitude(simple: str) -> float:
    """The number of a condition such as gaussian_blur[sigma=2]."""
    return next(float(v) for _, v in Condition.parse(simple).params if not isinstance(v, str))


def write_lost_people(runs: Sequence[Run], out: Path) -> list[Path]:
    """The picture of Fig. 6 for every run on images with people, as far as the images are at hand."""
    written = []
    for run in runs:
        try:
            picture = lost_people(open_people(run))
        except StormproofError:  # such as a run without people, or whose images have moved
            continue
        if picture is not None:
            name = f"-{file_name(run.folder.name)}" if len(runs) > 1 else ""
            written.append(out / f"lost-people{name}.png")
            picture.save(written[-1])
    return written
