"""A run over clips: scores, intervals over clips, a verdict, and the filmstrip of its report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import stormproof
from helpers.runs import Make
from stormproof.core.sample import Image, Instances, Prediction, Sample, Truth
from stormproof.datasets.opened import OpenedDataset, open_dataset
from stormproof.report.view import make_view
from stormproof.results.evidence import statement

CLIPS, FRAMES = 4, 6


def drive() -> list[Sample]:
    """Clips of a white car that drives to the right, with a red pixel in every third frame."""
    samples = []
    for clip in range(CLIPS):
        for number in range(FRAMES):
            image = np.full((48, 64, 3), 60, np.uint8)
            left = 4 + 5 * number
            image[20:32, left : left + 20] = 230
            image[0, 0] = (255, 0, 0) if number % 3 == 2 and clip else (60, 60, 60)
            truth = Truth(Instances([[left, 20, left + 20, 32]], [0], tracks=[5]))
            samples.append(
                Sample(f"{clip}-{number}", image, truth, sequence=f"clip {clip}", time=number / 10)
            )
    return samples


def blinking(images: Sequence[Image]) -> list[Prediction]:
    """Finds what is bright, unless the first pixel is red."""
    found = []
    for image in images:
        ys, xs = np.nonzero(image[..., 1] > 180)
        if image[0, 0, 0] > 200 or len(xs) < 50:
            found.append(Prediction())
        else:
            box = [[xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]]
            found.append(Prediction(box, [0.9], [0]))
    return found


@pytest.fixture(scope="module")
def dataset() -> OpenedDataset:
    return open_dataset(drive(), classes=["car"])


@pytest.fixture(scope="module")
def run(dataset: OpenedDataset, tmp_path_factory: pytest.TempPathFactory) -> stormproof.Run:
    model = stormproof.open_model(blinking, classes=["car"])
    out = tmp_path_factory.mktemp("clips") / "run"
    return stormproof.run(
        model, dataset, out=out, conditions=["spatter@4", "gaussian_noise@1"], progress=False
    )


def test_scores_and_intervals_are_over_clips(run: stormproof.Run) -> None:
    scores = run.score(interval=True)
    # Of five pairs of frames in each clip, the three clips with red pixels have three changes each.
    assert scores.per_condition["flicker"]["clean"] == pytest.approx(9 / 20)
    assert scores.per_condition["fragments"]["clean"] == pytest.approx(3 / 4)
    assert scores.per_condition["found"]["clean"] == pytest.approx(18 / 24)
    assert (scores.images, scores.clips, scores.units) == (24, 4, 4)
    sure = scores.interval("clean", "flicker")
    assert sure.images == CLIPS
    assert sure.low < 9 / 20 < sure.high
    halves = scores.replicates.per_condition["found"]["clean"][2:]
    possible = {(6 * a + 4 * b) / (6 * (a + b)) for a in (0, 1) for b in range(4) if a + b}
    assert all(any(abs(half - each) < 1e-9 for each in possible) for half in halves[np.isfinite(halves)])
    again = run.score(interval=True)
    assert again.clips == CLIPS  # as they were stored


def test_the_gate_judges_a_requirement_on_flicker(run: stormproof.Run) -> None:
    given = [  # four clips show little: 24 independent images would fail the second
        {"id": "R1", "metric": "found", "condition": "clean", "at_least": 0.1},
        {"id": "R2", "metric": "flicker", "condition": "clean", "at_most": 0.1},
    ]
    assert [str(verdict.outcome) for verdict in stormproof.check(run, given)] == ["pass", "inconclusive"]


def test_evidence_is_for_new_clips_and_warns_of_few_of_them(run: stormproof.Run) -> None:
    verdicts = stormproof.check(
        run, [{"id": "F", "metric": "flicker", "condition": "clean", "at_most": 0.99}]
    )
    intervals = statement(run, None, verdicts, pixels=1)["predicate"]["stormproof"]["intervals"]
    assert intervals["target"] == "new clips like these"
    assert (
        "frames of 4 clips, and frames of a clip are alike: intervals rest on 4 indep" in intervals["warning"]
    )


def test_slices_of_few_clips_are_named(run: stormproof.Run) -> None:
    assert "Fewer than 100 clips: " in run.slices("brightness", measure="found", replicates=50).table().note


def test_the_report_has_a_filmstrip(run: stormproof.Run, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    stormproof.report([run], out=page)
    text = page.read_text(encoding="utf-8")
    assert 'id="filmstrip"' in text
    assert text.count('<figure class="strip">') == 3
    assert "Are detections steady?" in text


def test_named_groups_widen_intervals_and_change_no_score(make: Make, tmp_path: Path) -> None:
    folder = make("contrast_boxes", name="grouped")
    spec = stormproof.Run(folder).record.dataset.spec
    table = tmp_path / "groups.csv"
    table.write_text("id,group\n" + "".join(f"{k + 1},{'ab'[k // 4]}\n" for k in range(8)), encoding="utf-8")
    single = stormproof.Run(folder).score(interval=True)  # stored in the folder, under the same key
    grouped = stormproof.Run(folder, data=f"{spec},groups={table}").score(interval=True)
    assert (single.clips, grouped.clips, grouped.units) == (None, 2, 2)
    assert single.per_condition["AP50"] == grouped.per_condition["AP50"]
    narrow, wide = (scores.interval("clean", "AP50") for scores in (single, grouped))
    assert (wide.images, narrow.images) == (2, 8)
    assert wide.half_width > narrow.half_width
    again = stormproof.Run(folder).score(interval=True)
    assert again.clips is None
    assert again.interval("clean", "AP50") == narrow
    (notice,) = (each for each in make_view([grouped]).notices if "clips" in each)
    assert "The 8 images are frames of 2 clips" in notice
    assert "rest on 2 independent observations" in notice
