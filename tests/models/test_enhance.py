"""Enhancement before a model: what it does to images, and that it makes another model."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.models import open_model
from stormproof.models.enhance import clahe, enhanced, nlm

RNG = np.random.default_rng(0)
DIM = np.clip(RNG.normal(60, 4, (64, 96, 3)), 0, 255).astype(np.uint8)


def test_clahe_widens_contrast_and_keeps_grey_grey() -> None:
    assert clahe(DIM).std() > 1.5 * DIM.std()
    grey = np.repeat(DIM[..., :1], 3, axis=2)
    lifted = clahe(grey).astype(int)
    assert np.ptp(lifted, axis=2).max() <= 1
    assert clahe(DIM[..., 0]).shape == (64, 96)
    assert clahe(DIM[..., :1]).shape == (64, 96, 1)


def test_nlm_removes_noise_and_keeps_edges() -> None:
    clean = np.zeros((64, 96, 3), np.uint8)
    clean[:, 48:] = (200, 120, 40)
    noisy = np.clip(clean + RNG.normal(0, 4, clean.shape), 0, 255).astype(np.uint8)
    cleaned = nlm(noisy)
    assert np.abs(cleaned.astype(int) - clean).mean() < 0.7 * np.abs(noisy.astype(int) - clean).mean()
    assert np.abs(cleaned[:, 60:].reshape(-1, 3).mean(axis=0) - (200, 120, 40)).max() < 3  # channels in order


class Recorder:
    """A model that keeps what it was shown."""

    name, classes, semantic_classes, fingerprint = "net", ("cat",), (), "abc"

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def __call__(self, images):
        self.seen = list(images)
        return []


def test_steps_run_in_order_and_name_the_model() -> None:
    model = Recorder()
    both = enhanced(model, ["clahe", "nlm"])
    both([DIM])
    assert np.array_equal(model.seen[0], nlm(clahe(DIM)))
    assert both.name == "net+clahe+nlm"
    assert both.classes == ("cat",)
    prints = {
        enhanced(model, steps).fingerprint
        for steps in ([], ["clahe"], ["nlm"], ["clahe", "nlm"], ["nlm", "clahe"])
    }
    assert len(prints) == 5
    assert enhanced(model, []) is model


def test_what_cannot_be_enhanced(tmp_path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'clahe'"):
        enhanced(Recorder(), ["clahee"])
    (tmp_path / "clean.json").write_text("[]")
    with pytest.raises(InvalidOption, match="no image to enhance"):
        enhanced(open_model(f"results:{tmp_path}/clean.json"), ["nlm"])
