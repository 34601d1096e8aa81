"""Enhancement before a model: what it does to images, and that it makes another model."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, StormproofError, UnknownName
from stormproof.models import load_model
from stormproof.models.enhance import clahe, enhance_model, nlm

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


def test_clahe_changes_the_luma_alone() -> None:
    """By the formulas of ITU-R BT.601: with red and blue exchanged, both planes of colour would move."""
    image = RNG.integers(60, 160, (64, 96, 3), dtype=np.uint8)
    image[:, :48, 0] += 60
    weights = np.array([0.299, 0.587, 0.114])
    luma = np.round(image @ weights).astype(np.uint8)
    lifted = cv2.createCLAHE(2.0, (8, 8)).apply(luma)
    shown = clahe(image).astype(float)
    inside = ((shown > 0) & (shown < 255)).all(axis=2)
    assert np.abs(shown @ weights - lifted)[inside].mean() < 0.5
    for channel in (0, 2):
        before, after = image[..., channel] - image @ weights, shown[..., channel] - shown @ weights
        assert np.abs(after - before)[inside].max() < 3


def test_nlm_separates_luma_from_colour() -> None:
    """As OpenCV does with BGR: means of CIELAB's L, and of its a and b, from the image as RGB."""
    image = RNG.integers(90, 110, (40, 48, 3), dtype=np.uint8)
    image[:, 24:] += np.array([90, 0, 30], np.uint8)
    lab = cv2.cvtColor(image, cv2.COLOR_LRGB2Lab)
    lightness = cv2.fastNlMeansDenoising(lab[..., 0], None, 3, 7, 21)
    colour = cv2.fastNlMeansDenoising(np.ascontiguousarray(lab[..., 1:]), None, 3, 7, 21)
    wanted = cv2.cvtColor(np.dstack([lightness, colour]), cv2.COLOR_Lab2LRGB)
    assert np.array_equal(nlm(image), wanted)


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
    both = enhance_model(model, ["clahe", "nlm"])
    both([DIM])
    assert np.array_equal(model.seen[0], nlm(clahe(DIM)))
    assert both.name == "net+clahe+nlm"
    assert both.classes == ("cat",)
    prints = {
        enhance_model(model, steps).fingerprint
        for steps in ([], ["clahe"], ["nlm"], ["clahe", "nlm"], ["nlm", "clahe"])
    }
    assert len(prints) == 5
    assert enhance_model(model, []) is model


def test_parameters_of_an_enhancement_are_part_of_the_model() -> None:
    model = Recorder()
    strong = enhance_model(model, ["nlm[h=20]"])
    strong([DIM])
    assert np.array_equal(model.seen[0], nlm(DIM, h=20))
    assert strong.name == "net+nlm[h=20]"
    assert strong.fingerprint == enhance_model(model, [" nlm[ h = 20.0 ]"]).fingerprint
    assert strong.fingerprint != enhance_model(model, ["nlm"]).fingerprint
    assert enhance_model(model, ["clahe[tiles=4,clip=3]"]).name == "net+clahe[clip=3,tiles=4]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nlm[strength=20]", "parameter of nlm 'strength'.*It has h, template, search"),
        ("nlm[h=much]", "h must be a number, not 'much'"),
        ("nlm[h=-1]", "h must be above 0"),
        ("nlm[h=20", r"write a name, or nlm\[h=20\]"),
        ("style[alpha=1]", "parameter of style 'alpha'.*none"),
    ],
)
def test_wrong_parameters_are_refused(text: str, said: str) -> None:
    with pytest.raises(StormproofError, match=said):
        enhance_model(Recorder(), [text])


def test_refuses_unknown_enhancements_and_models_without_images(tmp_path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'clahe'"):
        enhance_model(Recorder(), ["clahee"])
    with pytest.raises(UnknownName, match="There are clahe, nlm"):
        enhance_model(Recorder(), ["sharpen"])
    (tmp_path / "clean.json").write_text("[]")
    with pytest.raises(InvalidOption, match="no image to enhance"):
        enhance_model(load_model(f"results:{tmp_path}/clean.json"), ["nlm"])


def test_other_packages_bring_enhancements(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By entry point, as `style` does; what an enhancement states of itself is part of the fingerprint."""
    info = tmp_path / "brightener-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brightener\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[stormproof.enhancements]\nbrighter = my_brightener:brighter\n")
    (tmp_path / "my_brightener.py").write_text("def brighter(image, *, wrap=True):\n    return image + 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    model = Recorder()
    bright = enhance_model(model, ["brighter", "brighter"])
    bright([DIM])
    assert np.array_equal(model.seen[0], DIM + 2)
    assert bright.name == "net+brighter+brighter"
    first = bright.fingerprint
    monkeypatch.setattr("my_brightener.brighter.fingerprint", "2", raising=False)
    assert bright.fingerprint != first
    with pytest.raises(UnknownName, match=r"parameter of brighter 'wrap'.*It has none"):  # it is not a number
        enhance_model(model, ["brighter[wrap=false]"])
