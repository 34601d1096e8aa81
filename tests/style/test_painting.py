"""Style at test time: an enhancement that the package finds as it finds a user's, by entry point."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from stormproof.core.sample import Prediction
from stormproof.models.enhance import enhance_model
from stormproof.style import painting
from stormproof.style.painting import style, stylize
from stormproof.style.sources import list_styles


def test_style_works_as_an_enhancement() -> None:
    seen: list[np.ndarray] = []

    class Model:
        name, classes, semantic_classes, fingerprint = "toy", (), (), "0"

        def __call__(self, images: list[np.ndarray]) -> list[Prediction]:
            seen.extend(images)
            return [Prediction() for _ in images]

    image = np.random.default_rng(0).integers(0, 256, (32, 40, 3), np.uint8)
    model = enhance_model(Model(), ["style"])
    model([image, image])
    assert seen[0].shape == image.shape
    assert np.array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0], image)
    assert model.name == "toy+style"
    assert model.fingerprint != enhance_model(Model(), ["clahe"]).fingerprint
    assert np.array_equal(seen[0], style(image))


def test_the_enhancement_paints_the_given_image() -> None:
    """The last painting is kept; another image of the same size is not shown it."""
    first, second = np.random.default_rng(1).integers(0, 256, (2, 32, 40, 3), np.uint8)
    name = next(iter(list_styles().values()))
    alone = {}
    for key, image in (("first", first), ("second", second)):
        painting._last = painting._NOTHING  # as in a new process
        alone[key] = stylize(image, name, alpha=1.0)
    assert not np.array_equal(alone["first"], alone["second"])
    for key, image in (("first", first), ("second", second), ("first", first)):
        assert np.array_equal(stylize(image, name, alpha=1.0), alone[key])
    second[:] = first  # an array may be filled with another image
    assert np.array_equal(stylize(second, name, alpha=1.0), alone["first"])


def test_threads_paint_their_own_images() -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 32, 40, 3), np.uint8)
    chosen = next(iter(list_styles().values()))
    alone = [stylize(image, chosen, alpha=1.0) for image in images]
    with ThreadPoolExecutor(4) as threads:
        together = [threads.submit(stylize, images[k % 4], chosen, alpha=1.0) for k in range(200)]
        wrong = [k for k, one in enumerate(together) if not np.array_equal(one.result(), alone[k % 4])]
    assert wrong == []
