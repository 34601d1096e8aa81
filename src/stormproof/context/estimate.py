"""Depth for a sample from what there is: a stereo pair, a network, or a map with gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stormproof.context.dense import densify
from stormproof.context.depthmaps import Map
from stormproof.context.monocular import DepthModel
from stormproof.context.stereo import Matching, stereo_depth
from stormproof.errors import MissingContext
from stormproof.sample import Sample


class Estimator(Protocol):
    """A way to depth. `identity` names everything but the sample that its answer depends on."""

    @property
    def identity(self) -> str: ...
    def __call__(self, sample: Sample) -> Map: ...


@dataclass(frozen=True, slots=True)
class FromStereo:
    """Depth from the sample's right-hand image and its camera."""

    matching: Matching = Matching()  # noqa: RUF009  # frozen, so sharing one is safe

    @property
    def identity(self) -> str:
        return f"stereo 1 {self.matching.max_disparity}"

    def __call__(self, sample: Sample) -> Map:
        context = sample.context
        if context.right is None:
            raise MissingContext(
                f"Sample {sample.id!r} has no right-hand image; open the dataset with right=FOLDER."
            )
        if context.camera is None or context.camera.baseline is None:
            fix = "open the dataset with calib=FOLDER, whose files state it"
            raise MissingContext(f"Sample {sample.id!r} has no camera with a baseline; {fix}.")
        return stereo_depth(sample.image, context.right, context.camera, self.matching)


@dataclass(frozen=True, slots=True)
class FromModel:
    """Depth from a network; depths the sample has anchor its scale."""

    model: DepthModel

    @property
    def identity(self) -> str:
        return f"model 1 {self.model.identity}"

    def __call__(self, sample: Sample) -> Map:
        return self.model.depth(sample.image, sample.context.depth)


@dataclass(frozen=True, slots=True)
class FromGiven:
    """The sample's own depth with its gaps filled along the image."""

    @property
    def identity(self) -> str:
        return "given 1"

    def __call__(self, sample: Sample) -> Map:
        if sample.context.depth is None:
            fix = "open the dataset with depth=FOLDER, or disparity=FOLDER,calib=FOLDER"
            raise MissingContext(f"Sample {sample.id!r} has no depth to fill; {fix}.")
        return densify(sample.context.depth, sample.image)
