"""Style at test time: an enhancement that the package finds as it finds a user's, by entry point."""

from __future__ import annotations

import numpy as np

from stormproof.core.sample import Prediction
from stormproof.models.enhance import enhanced
from stormproof.style.painting import style


def test_style_as_an_enhancement() -> None:
    seen: list[np.ndarray] = []

    class Model:
        name, classes, semantic_classes, fingerprint = "toy", (), (), "0"

        def __call__(self, images: list[np.ndarray]) -> list[Prediction]:
            seen.extend(images)
            return [Prediction() for _ in images]

    image = np.random.default_rng(0).integers(0, 256, (32, 40, 3), np.uint8)
    model = enhanced(Model(), ["style"])
    model([image, image])
    assert seen[0].shape == image.shape
    assert np.array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0], image)
    assert model.name == "toy+style"
    assert model.fingerprint != enhanced(Model(), ["clahe"]).fingerprint
    assert np.array_equal(seen[0], style(image))
