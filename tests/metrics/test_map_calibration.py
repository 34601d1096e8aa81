"""ECE and Brier score of semantic maps against their definitions, from a network's output to scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from stormproof.core.errors import InvalidPrediction
from stormproof.core.object_arrays import STRIDE
from stormproof.core.sample import Image, Prediction, Sample, SemanticMap, Truth
from stormproof.datasets.dataset import SampleDataset
from stormproof.engine.api import run as run_it
from stormproof.metrics.inputs import Maps
from stormproof.metrics.map_calibration import BINS, SUMS, confidence_sums
from stormproof.models.candidates import to_semantic
from stormproof.models.geometry import plan_fit
from stormproof.results.run import Run


def by_definition(sure: np.ndarray, right: np.ndarray) -> tuple[float, float]:  # type: ignore[type-arg]
    """ECE over 15 bins closed above, and the Brier score, pixel by pixel."""
    ece = 0.0
    for k in range(BINS):
        inside = (sure > k / BINS) & (sure <= (k + 1) / BINS)
        if inside.any():
            ece += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    return ece, float(np.mean((sure - right) ** 2))


@pytest.mark.parametrize("size", [(16, 24), (17, 23)])
def test_confidence_is_the_softmax_of_the_winner(size: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    planes = rng.normal(0, 3, (5, 8, 12)).astype(np.float32)
    fit = plan_fit(size, (8, 12), "stretch")
    found = to_semantic(planes, fit)
    resized = np.stack([fit.plane_to_image(plane) for plane in planes])
    expected = softmax(resized.astype(np.float64), axis=0).max(axis=0)[::STRIDE, ::STRIDE]
    assert found.semantic is not None
    assert found.confidence is not None
    assert np.array_equal(found.semantic, resized.argmax(axis=0))
    assert found.confidence == pytest.approx(expected, abs=1e-6)
    # Probabilities stay what they are.
    likely = to_semantic(softmax(planes, axis=0), fit).confidence
    shares = np.stack([fit.plane_to_image(plane) for plane in softmax(planes, axis=0)])
    assert likely == pytest.approx(shares.max(axis=0)[::STRIDE, ::STRIDE], abs=1e-6)


def test_a_full_confidence_map_is_subsampled() -> None:
    semantic, sure = np.zeros((9, 6), np.uint8), np.linspace(0, 1, 54).reshape(9, 6)
    found = Prediction(semantic=semantic, confidence=sure)  # type: ignore[arg-type]
    assert found.confidence is not None
    assert found.confidence == pytest.approx(sure[::STRIDE, ::STRIDE])
    with pytest.raises(InvalidPrediction, match=r"confidence is \(2, 2\)"):
        Prediction(semantic=semantic, confidence=np.zeros((2, 2)))  # type: ignore[arg-type]
    with pytest.raises(InvalidPrediction, match="0 to 1"):
        Prediction(semantic=semantic, confidence=sure * 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidPrediction, match="give both"):
        Prediction(confidence=sure)  # type: ignore[arg-type]


def test_stored_sums_give_ece_and_brier_as_defined() -> None:
    rng = np.random.default_rng(1)
    true = rng.integers(0, 4, (64, 80)).astype(np.uint8)
    true[true == 3] = 255
    said, sure = rng.integers(0, 4, true.shape).astype(np.uint8), rng.random(true.shape).astype(np.float32)
    labels = np.array([1, 0, -1, 2])  # the model's classes in another order, one unknown
    thin = sure[::STRIDE, ::STRIDE]
    sums = confidence_sums(SemanticMap(true), said, thin, labels)
    counted = true[::STRIDE, ::STRIDE] != 255
    right = (labels[said] == true)[::STRIDE, ::STRIDE][counted]
    ece, brier = by_definition(thin[counted].astype(float), right)
    maps = Maps.of(
        *(np.zeros(1, np.int64),) * 3, np.ones(1, np.int64), images=1, classes=("a", "b", "c"), kept=(0,),
        confidences=sums[None],
    )  # fmt: skip
    found = maps.scored(np.ones((1, 1))).numbers
    assert found["ECE"][0] == pytest.approx(ece, abs=1e-9)
    assert found["Brier"][0] == pytest.approx(brier, abs=1e-9)
    assert sums.reshape(BINS, SUMS)[:, 0].sum() == counted.sum()
    assert "ECE" not in Maps.of(
        *(np.zeros(1, np.int64),) * 3, np.ones(1, np.int64), images=1, classes=("a",), kept=(0,)
    ).scored(np.ones((1, 1))).numbers  # fmt: skip


def unsure(images: list[Image]) -> list[Prediction]:
    """Always predicts road, with the brightness of the image as its confidence."""
    return [
        Prediction(
            semantic=np.zeros(image.shape[:2], np.uint8),
            confidence=image[..., 0].astype(np.float32) / 255,
        )
        for image in images
    ]


def test_a_run_stores_sums_and_scores_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    samples = [
        Sample(
            f"i{k}", rng.integers(0, 256, (32, 48, 3), np.uint8),
            Truth(semantic=SemanticMap(rng.integers(0, 2, (32, 48)).astype(np.uint8))),
        )
        for k in range(6)
    ]  # fmt: skip
    data = SampleDataset.of(samples, semantic_classes=("road", "sky"))
    unsure.semantic_classes = ("road", "sky")  # type: ignore[attr-defined]
    run_it(model=unsure, data=data, conditions="brightness@2", out=tmp_path / "run", engine="local")
    scores = Run(tmp_path / "run", data=data).score(interval=True)
    sure = np.concatenate([s.image[::4, ::4, 0].ravel() / 255 for s in samples])
    right = np.concatenate([s.truth.semantic.labels[::4, ::4].ravel() == 0 for s in samples])  # type: ignore[union-attr]
    ece, brier = by_definition(sure.astype(np.float32).astype(float), right)
    assert scores.per_condition["ECE"]["clean"] == pytest.approx(ece, abs=1e-6)
    assert scores.per_condition["Brier"]["clean"] == pytest.approx(brier, abs=1e-6)
    assert scores.interval("clean", "ECE").se > 0
    bins = scores.details["reliability"]["brightness@2"]
    assert len(bins["score"]) == BINS
    assert sum(bins["detections"]) == len(sure)
    part = next((tmp_path / "run" / "parts").glob("*.parquet"))
    import pyarrow.parquet as pq

    assert {len(row) for row in pq.read_table(part)["confidences"].to_pylist()} == {BINS * SUMS}


def test_a_model_without_confidence_has_no_ece(tmp_path: Path) -> None:
    labels = np.zeros((8, 8), np.uint8)
    sample = Sample("a", np.zeros((8, 8, 3), np.uint8), Truth(semantic=SemanticMap(labels)))
    data = SampleDataset.of([sample], semantic_classes=("road",))

    def silent(images: list[Image]) -> list[Prediction]:
        return [Prediction(semantic=labels) for _ in images]

    silent.semantic_classes = ("road",)  # type: ignore[attr-defined]
    run_it(model=silent, data=data, conditions="clean", out=tmp_path / "run", engine="local")
    scores = Run(tmp_path / "run", data=data).score()
    assert scores.per_condition["mIoU"]["clean"] == 1.0
    assert "ECE" not in scores
