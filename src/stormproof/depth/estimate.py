"""Depth for a sample: from a stereo pair, by a network, or from a map with gaps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption, MissingContext
from stormproof.core.randomness import digest
from stormproof.core.sample import Sample
from stormproof.datasets.depthmaps import DepthEstimate, DepthFolder
from stormproof.depth.complete import complete
from stormproof.depth.holes import nearness
from stormproof.depth.monocular import DepthModel
from stormproof.depth.priors import Region, put_priors
from stormproof.depth.sky import sky_of
from stormproof.depth.stereo import stereo_depth

_LOOKS = 0.8  # confidence in sky recognised by its appearance alone


@dataclass(frozen=True, slots=True)
class FromStereo:
    """Depth from the sample's right-hand image and its camera, searching `max_disparity` pixels."""

    max_disparity: int | None = None
    sky: bool = True

    def __post_init__(self) -> None:
        if self.max_disparity is not None and self.max_disparity < 1:
            raise InvalidOption(f"max_disparity={self.max_disparity}: give a number of pixels, at least 1.")

    @property
    def identity(self) -> str:
        return f"stereo 7 {self.max_disparity} {self.sky}"

    def __call__(self, sample: Sample) -> DepthEstimate:
        context = sample.context
        if context.right is None:
            raise MissingContext(
                f"Sample {sample.id!r} has no right-hand image; open the dataset with right=FOLDER."
            )
        if context.camera is None or context.camera.baseline is None:
            fix = "open the dataset with calib=FOLDER, whose files state it"
            raise MissingContext(f"Sample {sample.id!r} has no camera with a baseline; {fix}.")
        return stereo_depth(sample.image, context.right, context.camera, self.max_disparity, sky=self.sky)


@dataclass(frozen=True, slots=True)
class FromModel:
    """Depth from a network; known depths of the sample fix its scale."""

    model: DepthModel
    sky: bool = True

    @property
    def identity(self) -> str:
        return f"model 2 {self.model.identity} {self.sky}"

    def __call__(self, sample: Sample) -> DepthEstimate:
        depth = self.model.depth(sample.image, sample.context.depth)
        given = sample.context.depth
        if self.sky:
            depth = np.where(sky_of(sample), np.float32(np.inf), depth)
        # A network gives depth everywhere; only the known depths are certain.
        sure = np.full(depth.shape, 0.5, np.float32)
        return DepthEstimate(depth, sure if given is None else np.where(np.isnan(given), sure, 1))


@dataclass(frozen=True, slots=True)
class FromGiven:
    """The sample's own depth, with gaps filled along the edges of the image."""

    sky: bool = True

    @property
    def identity(self) -> str:
        return f"given 5 {self.sky}"

    def __call__(self, sample: Sample) -> DepthEstimate:
        if sample.context.depth is None:
            fix = "open the dataset with depth=FOLDER, or disparity=FOLDER,calib=FOLDER"
            raise MissingContext(f"Sample {sample.id!r} has no depth to fill; {fix}.")
        given = sample.context.depth
        known = ~np.isnan(given)
        sky = sky_of(sample) & ~known if self.sky else np.zeros(known.shape, np.bool_)
        confidence = np.maximum(nearness(known), np.float32(_LOOKS) * sky)
        return DepthEstimate(complete(given, sample.image, sky), confidence.astype(np.float32))


# A way to estimate depth. `identity` describes what the result depends on, apart from the sample.
Estimator = FromStereo | FromModel | FromGiven


def key_of(
    sample: Sample, estimator: Estimator, priors: Sequence[Region] = (), semantic_classes: Sequence[str] = ()
) -> str:
    """A hash of everything that determines a sample's depth: pixels, context, method and priors."""
    context = sample.context
    arrays: list[npt.NDArray[Any] | None] = [sample.image, context.right, context.depth]
    if any(region.semantic_class for region in priors) and sample.truth.semantic is not None:
        arrays.append(sample.truth.semantic.labels)
    parts = [
        estimator.identity,
        [None if array is None else digest(np.ascontiguousarray(array).view(np.uint8)) for array in arrays],
        None if context.camera is None else asdict(context.camera),
        [asdict(region) for region in priors],
        list(semantic_classes) if len(arrays) > 3 else [],
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def make_depth(
    sample: Sample,
    folder: DepthFolder,
    estimator: Estimator,
    priors: Sequence[Region] = (),
    semantic_classes: Sequence[str] = (),
) -> bool:
    """Compute a sample's depth map unless the folder has it; returns whether it was computed."""
    key = key_of(sample, estimator, priors, semantic_classes)
    if folder.holds(sample.id, key):
        return False
    estimate = estimator(sample)
    depth = put_priors(estimate.depth, priors, sample, semantic_classes)
    given = (depth != estimate.depth) & ~(np.isnan(depth) & np.isnan(estimate.depth))
    folder.write(
        sample.id, key, DepthEstimate(depth, np.where(given, 1, estimate.confidence).astype(np.float32))
    )
    return True
