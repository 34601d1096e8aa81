"""The studies over kept scores: pages that are what the scores give, and numbers by hand."""

from __future__ import annotations

import importlib.util
import json
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import spearmanr

from helpers import forked
from helpers.runs import Make
from stormproof import Run

STUDIES = Path(__file__).resolve().parents[2] / "studies"
KEPT = ("ablations", "camera", "combined", "corrupted", "people", "texture")


def load(name: str) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location(f"{name}_study", STUDIES / name / "study.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def ablations() -> Iterator[ModuleType]:
    yield from load("ablations")


@pytest.fixture(scope="module")
def people() -> Iterator[ModuleType]:
    yield from load("people")


@pytest.fixture(scope="module")
def camera() -> Iterator[ModuleType]:
    yield from load("camera")


@pytest.fixture(scope="module")
def combined() -> Iterator[ModuleType]:
    yield from load("combined")


# The script as it is, but that it compares its page twice: as it is, and with one digit changed.
CHECKED_TWICE = """
import runpy, sys
sys.path.insert(0, sys.argv[2])
import parts

def renew(page, made, *, check, once=parts.renew):
    once(page, made, check=check)
    first, _, rest = page.read_text(encoding="utf-8").partition("begin -->\\n")
    page.write_text(f"{first}begin -->\\n{rest.replace('.', ',', 1)}", encoding="utf-8")
    once(page, made, check=check)

parts.renew = renew
sys.argv = [sys.argv[1], "--check"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_a_page_equals_what_its_scores_give(name: str, tmp_path: Path) -> None:
    """And a number that is not is found: the whole folder is copied, one digit of its page changed."""
    for folder in (name, "cures"):
        shutil.copytree(STUDIES / folder, tmp_path / "studies" / folder, dirs_exist_ok=True)
    shutil.copy(STUDIES / "storms.py", tmp_path / "studies")
    (tmp_path / "docs").mkdir()
    shutil.copy(STUDIES.parent / "docs" / "parts.py", tmp_path / "docs")
    script = tmp_path / "studies" / name / "study.py"
    code, said = forked.outcome([str(script), str(tmp_path / "docs")], tmp_path, code=CHECKED_TWICE)
    assert "parts are up to date" in said
    assert code == 1
    assert "out of date" in said


def test_corruption_degradation_by_hand(ablations: ModuleType) -> None:
    """CD of a network without its long link under blur, from the arrays of the file."""
    found = ablations.read(ablations.HERE / "scores.npz", "mIoU")
    one, reference = found["nolink-1"], found["reference-1"]
    with np.load(ablations.HERE / "scores.npz") as kept:
        at = {text: k for k, text in enumerate(kept["conditions"].tolist())}
        lost = {name: 1 - kept[f"{name}-1/mIoU"].astype(float) for name in ("nolink", "reference")}
    ratios = []
    for name in ("motion_blur", "defocus_blur", "glass_blur", "gaussian_blur", "psf_blur"):
        rows = [at[f"{name}@{s}"] for s in range(1, 6) if f"{name}@{s}" in at]
        ratios.append(lost["nolink"][rows].sum() / lost["reference"][rows].sum())
    value = ablations.against(one, reference, ablations.cd)["blur"]
    assert value.estimate == pytest.approx(100 * np.mean(ratios))
    assert value.interval[0] < value.estimate < value.interval[1]


def test_a_network_against_itself_has_cd_100(ablations: ModuleType) -> None:
    one = ablations.read(ablations.HERE / "scores.npz", "mIoU")["reference-1"]
    for rule in (ablations.cd, ablations.rcd):
        for value in ablations.against(one, one, rule).values():
            assert value.estimate == pytest.approx(100)
            assert value.interval == pytest.approx((100, 100))


def test_defocus_is_fitted_on_the_other_systems_only(people: ModuleType) -> None:
    """The first system predicted by SciPy's NNLS over the eleven others."""
    from scipy.optimize import nnls

    found = people.read(people.SCORES, "ADR")
    assert len(found) == 12
    each = people.predictions(found)["defocus"]
    with np.load(people.SCORES) as kept:
        texts = kept["conditions"].tolist()
        rates = np.array([kept[f"{name}/ADR"] for name in each.systems], float)
    shares = rates / rates[:, [texts.index("clean")]]
    blur = shares[:, [texts.index(text) for text in each.simple]]
    seen = shares[:, texts.index(each.contextual[3])]
    weights = nnls(blur[1:], seen[1:])[0]
    assert each.predicted[0, 3] == pytest.approx(blur[0] @ weights, abs=1e-6)


def test_a_change_of_error_is_the_mean_over_seeds(camera: ModuleType) -> None:
    with np.load(camera.CURES) as kept:
        at = [kept["conditions"].tolist().index(f"gamma_damage@{s}") for s in (1, 3, 5)]
        apart = [
            (kept[f"grid-stylized-{s}/E"][at].astype(float) - kept[f"grid-standard-{s}/E"][at]).mean()
            for s in (1, 2)
        ]
    assert f"| gamma damage | {100 * np.mean(apart):+.1f} (" in camera.trainings()


def test_seeds_of_one_training_are_ranked_as_one(camera: ModuleType) -> None:
    """Two seeds share what makes a training better, so they are no two witnesses of a correlation."""
    faults = camera.grid(camera.UNCHANGED, camera.SEVERITIES)
    better: dict[str, list[float]] = {}
    suffered: dict[str, list[float]] = {}
    with np.load(camera.CURES) as kept:
        texts = kept["conditions"].tolist()
        at = [texts.index(text) for text in faults]
        for name in (key.partition("/")[0] for key in kept.files if key.endswith("/E") and "+" not in key):
            training = name.rpartition("-")[0]
            better.setdefault(training, []).append(kept[f"{name}/AP"][texts.index("clean")])
            suffered.setdefault(training, []).append(kept[f"{name}/E"][at].astype(float).mean())
    ranked = spearmanr(*([np.mean(seeds) for seeds in side.values()] for side in (better, suffered)))
    (line,) = [line for line in camera.ranks().splitlines() if line.startswith("| trainings of")]
    assert f"| {len(better)} | {ranked.statistic:+.2f} (p = {ranked.pvalue:.1g}) |" in line


def test_both_comparisons_of_combined_training_by_hand(combined: ModuleType) -> None:
    found = combined.read(combined.KEPT, "AP")
    with np.load(combined.KEPT) as kept:
        texts = kept["conditions"].tolist()
        assert (len(texts), len(kept["ids"])) == (76, 500)
        mean_of = {
            name: [
                100 * kept[f"grid-{name}-{s}/AP"][[t != "clean" for t in texts]].astype(float).mean()
                for s in (1, 2)
            ]
            for name in ("standard", "longer", "combined")
        }
    for pair in (("combined", "longer"), ("combined", "standard")):
        each = combined.each(found, "grid", pair, combined.COLUMNS["mPC"])
        apart = np.subtract(*(mean_of[name] for name in pair))
        assert [one.estimate for one in each] == pytest.approx(apart.tolist(), abs=1e-4)


def test_the_change_of_detectors_under_faults_by_hand(camera: ModuleType) -> None:
    """The change under faults, and its share of the error that could be added, from the arrays of a file."""
    with np.load(camera.HERE / "photographs.npz") as kept:
        at = kept["conditions"].tolist().index("clean")
        errors = 100 * kept["street-grid/E"].astype(float)
    clean, faults = errors[at], np.delete(errors, at).mean()
    lines = camera.side_by_side().splitlines()
    (line,) = [line for line in lines if line.startswith("| photographs | street-grid | street |")]
    assert f"| {clean:.1f} ± " in line
    assert f"| {faults - clean:+.1f} (" in line
    assert f"| {100 * (faults - clean) / (100 - clean):.1f} ± " in line


def test_only_photographs_of_shared_classes_are_run(camera: ModuleType, tmp_path: Path) -> None:
    held = {
        "images": [{"id": 1}, {"id": 2}],
        "categories": [{"id": 3, "name": "car"}, {"id": 4, "name": "zebra"}],
        "annotations": [
            {"image_id": 1, "category_id": 3},
            {"image_id": 1, "category_id": 4},
            {"image_id": 2, "category_id": 4},
        ],
    }
    (tmp_path / "all.json").write_text(json.dumps(held))
    chosen = sys.modules["detectors"].with_shared_classes(tmp_path / "all.json", tmp_path / "some.json")
    shown = json.loads(chosen.read_text())
    assert shown["images"] == [{"id": 1}]
    assert shown["annotations"] == held["annotations"][:2]


def test_written_scores_have_the_intervals_of_the_run(camera: ModuleType, make: Make, tmp_path: Path) -> None:
    scores = Run(make("contrast_boxes")).score(interval=True)
    sys.modules["storms"].write(tmp_path / "scores.npz", {"net": scores}, ["AP", "E"])
    for measure in ("AP", "E"):
        cells = camera.read(tmp_path / "scores.npz", measure)["net"].per_condition
        assert set(cells) == set(scores.per_condition[measure])
        for condition, value in cells.items():
            one = scores.interval(condition, measure)
            assert value.estimate == pytest.approx(100 * one.estimate, abs=1e-4)
            if not 0.1 < one.estimate < 0.9:  # the run's is binomial there; a study's is not
                continue
            inside = tuple(np.clip(value.interval, 0, 100))  # as the run's is; a study also shows differences
            assert inside == pytest.approx((100 * one.low, 100 * one.high), abs=0.2, nan_ok=True)


def test_seeds_widen_an_interval_by_their_pooled_spread(ablations: ModuleType) -> None:
    storms = sys.modules["storms"]
    spread = storms.Spread.of([[1.0, 3.0], [10.0, 12.0], [5.0]])
    assert spread.deviation == pytest.approx(np.sqrt(2))
    assert spread.freedom == 2
    assert spread.half_width(2, 2) == pytest.approx(4.303 * np.sqrt(2), rel=1e-3)
    drawn = np.random.default_rng(0).normal(50, 1, 100)
    value = storms.Value(50.0, drawn, 100)
    low, high = value.interval
    assert storms.half_width(value, spread, 2, 2) == pytest.approx(
        np.hypot((high - low) / 2, spread.half_width(2, 2))
    )


def test_each_ablation_is_another_network_with_the_same_output() -> None:
    torch = pytest.importorskip("torch")
    trainings = runpy.run_path(str(STUDIES / "ablations" / "trainings.py"))
    from training.networks import build

    seen = {}
    for name in trainings["ABLATIONS"]:
        chosen = trainings["settings"](name, 1)
        network = build(chosen.network, chosen.options, chosen.seed).eval()
        outputs = network(torch.zeros(1, 3, 96, 128))["logits"]
        assert outputs.shape == (1, 12, 24, 32)
        seen[name] = sum(p.numel() for p in network.parameters())
    assert seen["noac"] == seen["reference"]  # the same weights, closer together
    assert (
        seen["noaspp"] < seen["dpc"] < seen["reference"] < seen["mean"] < seen["deepreference"] < seen["wide"]
    )
    assert trainings["settings"]("weather", 2).images[1].array == "spatter@3"
