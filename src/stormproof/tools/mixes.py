"""Training sets: mixes of versions of each image, and a torch dataset that makes them on the fly."""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.loading import framework
from stormproof.core.sample import Sample, as_rgb
from stormproof.corruptions.chain import check
from stormproof.corruptions.corruption import find
from stormproof.datasets.dataset import Dataset
from stormproof.tools.derived import Version, version_of

MIXES = ("standard", "stylized", "combined", "corrupted")
CLEAN = Version()


def versions_of(
    mix: str,
    *,
    condition: str | None = None,
    styles: str | None = None,
    alpha: float = 1.0,
    network: str | None = None,
) -> tuple[Version, ...]:
    """The versions of every image that a mix contains.

    >>> [version.condition for version in versions_of("corrupted", condition="fog@3")]
    ['clean', 'fog@3']
    """
    if mix not in MIXES:
        raise UnknownName("mix", mix, MIXES, f"Mixes: {', '.join(MIXES)}.")
    if (mix == "corrupted") != (condition is not None):
        raise InvalidOption(f"Mix {mix}: only the mix 'corrupted' has a condition, and it needs one: fog@3.")
    if mix == "corrupted":
        given = Condition.parse(str(condition))
        if given.is_clean:
            raise InvalidOption("Mix corrupted: it already has 'clean'; give a corruption, such as fog@3.")
        check(given)
        return CLEAN, version_of(given)
    if mix == "standard":
        return (CLEAN,)
    recipe = find("style")
    own = {key: value for key, value in (("styles", styles), ("network", network))
           if value not in (None, recipe.ladders[key].values[0])}  # fmt: skip
    painted = Condition.of("style", params={"alpha": alpha, **own})
    recipe.parameters(painted)
    return (version_of(painted),) if mix == "stylized" else (CLEAN, version_of(painted))


class Mixed:
    """A mix as a sequence of samples: every image in every version, made on demand.

    `epoch` is part of the seed, so that styles and noise change from epoch to epoch.
    """

    def __init__(
        self, dataset: Dataset, versions: tuple[Version, ...], *, seed: int = 0, epoch: int = 0
    ) -> None:
        self.dataset, self.versions, self.seed, self.epoch = dataset, versions, seed, epoch

    def __len__(self) -> int:
        return len(self.dataset) * len(self.versions)

    def __getitem__(self, index: int) -> Sample:
        index = range(len(self))[index]
        image, version = divmod(index, len(self.versions))
        return self.versions[version].make(self.dataset[image], self.dataset, self.seed + self.epoch)


def torch_dataset(mixed: Mixed) -> Any:
    """The mix as a `torch.utils.data.Dataset` of (image, target), for torchvision's detectors.

    The image is 3×H×W float from 0 to 1; the target has boxes (xyxy), labels (from 1; 0 is background), and
    masks and a semantic map if the dataset has them.
    """
    framework("torch", extra="torch")
    import torch
    from torch.utils.data import Dataset as TorchDataset

    class Set(TorchDataset[tuple[Any, dict[str, Any]]]):
        def __len__(self) -> int:
            return len(mixed)

        def __getitem__(self, index: int) -> tuple[Any, dict[str, Any]]:
            sample = mixed[index]
            pixels = as_rgb(sample.image)
            image = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))).float() / 255
            target: dict[str, Any] = {"id": sample.id}
            objects, semantic = sample.truth.instances, sample.truth.semantic
            if objects is not None:
                keep = ~(objects.crowd | objects.ignore)
                target["boxes"] = torch.from_numpy(objects.boxes[keep].astype(np.float32))
                target["labels"] = torch.from_numpy(objects.labels[keep] + 1)
                if objects.masks is not None:
                    kept = [mask.to_mask() for mask, k in zip(objects.masks, keep, strict=True) if k]
                    empty = np.zeros((0, *pixels.shape[:2]), bool)
                    target["masks"] = torch.from_numpy(np.stack(kept) if kept else empty)
            if semantic is not None:
                target["semantic"] = torch.from_numpy(semantic.labels.astype(np.int64))
            return image, target

    return Set()
