"""The study of cures: which training is compared with which, and tables that are what the scores give."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "studies" / "cures"


@pytest.fixture(scope="module")
def study() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("cures_study", FOLDER / "study.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        patch.setitem(sys.modules, spec.name, module)  # where dataclasses look for it
        spec.loader.exec_module(module)
        yield module


def test_every_cure_is_compared_at_equal_steps(study: ModuleType) -> None:
    for name, cure in study.CURES.items():
        clean = next(source.share for source in cure.images if source.array == "images" or not cure.seen)
        share = clean / sum(source.share for source in cure.images)
        if name != "stylized" and not cure.adversarial and name != "longer":
            assert cure.steps * share == pytest.approx(1), (
                name
            )  # as many clean images as the standard training
        assert study.CURES[study.control(name)].steps == (1 if name == "longer" else cure.steps)


def test_a_difference_is_paired_and_ratios_follow_the_draws(study: ModuleType) -> None:
    noise = np.linspace(-1, 1, 52)
    cells = {"clean": study.Value(50.0, 50 + noise, 9), "fog@1": study.Value(25.0, 25 + noise / 2, 9)}
    one = study.Trained(cells)
    assert one.relative(["fog@1"]).estimate == 50
    assert one.relative(["fog@1"]).drawn == pytest.approx(np.full(52, 50.0))
    gap = one.per_condition["clean"] - one.per_condition["clean"]
    assert gap.interval == (0, 0)


def test_means_by_hand(study: ModuleType) -> None:
    """mPC and the camera's mean, from the file's arrays directly."""
    found = study.read(study.KEPT)
    with np.load(study.KEPT) as kept:
        scores = dict(zip(kept["conditions"].tolist(), kept["grid-combined-1/AP"].tolist(), strict=True))
    fifteen = [v for k, v in scores.items() if k.split("@")[0] in study.BENCHMARK_15]
    assert len(fifteen) == 75
    one = found["grid", "combined", 1]
    assert study.COLUMNS["mPC"](one).estimate == pytest.approx(100 * np.mean(fifteen))
    assert study.COLUMNS["rPC"](one).estimate == pytest.approx(100 * np.mean(fifteen) / scores["clean"])
    assert study.COLUMNS["haze"](one).estimate == pytest.approx(
        100 * np.mean([v for k, v in scores.items() if k.startswith("haze")])
    )


def test_the_page_equals_what_the_scores_give(study: ModuleType) -> None:
    page = study.PAGE.read_text(encoding="utf-8")
    assert [name for name, text in study.parts(study.KEPT).items() if text not in page] == []


def test_the_radar_shows_means_over_severities(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "study", study)  # which the figures import
    monkeypatch.delitem(sys.modules, "figures", raising=False)
    figures = importlib.import_module("figures")
    found = study.read(study.KEPT)
    drawn = figures.radar(found).to_dict()
    corruptions, categories = drawn["hconcat"]
    rows = corruptions["data"]["values"]
    shown = {(row["series"], row["x"]): row["y"] for row in rows if "series" in row}
    assert len(shown) == 2 * (1 + 19)
    texts = [f"shot_noise@{severity}" for severity in range(1, 6)]
    seeds = [found["plain", "corrupted", seed].mean(texts).estimate for seed in (1, 2)]
    assert shown["clean and corrupted scenes", "shot noise"] == pytest.approx(np.mean(seeds))
    panels = [panel for line in categories["vconcat"] for panel in line["hconcat"]]
    assert [panel["title"] for panel in panels] == [f"{text} alone" for text in study.CORRUPTED.values()]


def test_every_training_of_the_list_has_a_network(study: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    import trainings
    from training.networks import build

    weights = {}
    for network in trainings.BASES:
        chosen = trainings.settings(network, "standard", 1)
        built = build(chosen.network, chosen.options, chosen.seed).eval()
        weights[network] = sum(p.numel() for p in built.parameters())
        if chosen.network == "semantic":
            assert built(torch.zeros(1, 3, 64, 128))["logits"].shape == (1, 12, 16, 32)
    assert len({*weights.values()}) == len(weights)
