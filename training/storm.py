"""Scores trained weights in the storm: many networks under many conditions, on one device.

    python -m training storm weights/*.pt --scenes 300 --conditions imagenet-c --out scores.npz

Every condition is made once for all networks, by the package's own recipes, and scored by the package's own
metrics, for the whole set and for random halves of it, from which intervals follow (docs/adr/0028). Networks
run as they were trained, in PyTorch. A remedy without training is written NAME+REMEDY: `bn` normalises by
the statistics of the test images instead of those of the training (Schneider et al. 2020); `clahe`, `nlm`
and `restyled` (painted in the look of clean scenes) change the images first; `rebuilt` is the control of
`restyled`.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from stormproof import corrupt_batch
from stormproof.core.condition import Condition
from stormproof.core.sample import Image, Instances, Prediction, SemanticMap, Truth
from stormproof.corruptions import truth_under
from stormproof.corruptions.chain import moves_labels, needs
from stormproof.metrics.coco import coco_scored
from stormproof.metrics.inputs import Maps, Objects
from stormproof.metrics.metric import Scored, mean_of_known
from stormproof.metrics.records import DetectionTruth, lay_out
from stormproof.metrics.roc import People
from stormproof.results.weights import half_weights
from stormproof.world.classes import OBJECTS, PERSON, SEMANTIC, VOID
from training.augment import normalised
from training.boxes import constant
from training.decoding import found
from training.export import load_weights
from training.stylizing import Restyled

MEASURES = {"grid": ("AP", "AP50", "APs", "APm", "APl", "E", "ADR"), "semantic": ("mIoU",)}
BATCH = 50
RESTYLED = {"restyled": 1.0, "rebuilt": 0.0}  # α
LEAST = 0.01  # score of a detection, as in the networks' cards


@dataclass(frozen=True)
class TestSet:
    """Scenes of `world:test` in memory."""

    ids: tuple[str, ...]
    images: npt.NDArray[np.uint8]  # N×H×W×3
    depth: npt.NDArray[np.float32]  # N×H×W
    semantic: npt.NDArray[np.uint8]  # N×H×W
    objects: tuple[Instances, ...]


def rendered(count: int, scenario: str = "") -> TestSet:
    """The first scenes of `world:test`, or of a scenario of it."""
    from stormproof.world.plan import scenes_of

    numbers = scenes_of(scenario, 0, "test", count) if scenario else range(count)
    with multiprocessing.get_context("fork").Pool() as processes:
        rows = processes.map(_one, numbers, chunksize=4)
    ids, images, depth, semantic, objects = zip(*rows, strict=True)
    return TestSet(ids, np.stack(images), np.stack(depth), np.stack(semantic), objects)


def _one(index: int) -> tuple[Any, ...]:
    from stormproof.world.samples import render

    sample = render(0, "test", index).sample
    assert sample.truth.instances is not None
    assert sample.truth.semantic is not None
    assert sample.context.depth is not None
    objects = sample.truth.instances
    plain = Instances(
        objects.boxes, objects.labels, crowd=objects.crowd, ignore=objects.ignore, area=objects.area
    )
    return sample.id, sample.image, sample.context.depth, sample.truth.semantic.labels, plain


def storm(
    weights: Sequence[Path], conditions: Sequence[str], scenes: TestSet, *, replicates: int,
    remedies: Sequence[str] = (),
) -> dict[tuple[str, str], Any]:  # fmt: skip
    """Values by network, condition and measure: the score, then those of random halves; and its optimism.

    With `remedies`, such as `grid-standard-1+clahe`, those networks are scored with them as well.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    networks = _networks(weights, remedies, device)
    before = {name: _before(name, device) for name in {remedy for _, _, remedy in networks.values()}}
    truth = DetectionTruth.of(zip(scenes.ids, scenes.objects, strict=True), OBJECTS)
    halves = half_weights(scenes.ids, replicates=replicates)
    rows = np.concatenate([np.ones((1, len(scenes.ids)), np.uint8), halves])
    images = torch.from_numpy(scenes.images).to(device).permute(0, 3, 1, 2).contiguous()
    depth = torch.from_numpy(scenes.depth).to(device)
    values: dict[tuple[str, str], Any] = {}
    clean: dict[str, People] = {}
    for condition in dict.fromkeys(("clean", *conditions)):  # where sensitivities to people are fixed
        begun = time.monotonic()
        changed = [
            corrupt_batch(
                images[k : k + BATCH], condition, ids=scenes.ids[k : k + BATCH],
                depth=depth[k : k + BATCH] if needs(Condition.parse(condition)) else None,
            )
            for k in range(0, len(images), BATCH)
        ]  # fmt: skip
        corrupted = torch.cat(changed).permute(0, 2, 3, 1)
        seen = {name: change(corrupted) for name, change in before.items()}
        truth_maps = torch.from_numpy(_moved(condition, scenes)).to(device)
        for name, (kind, network, remedy) in networks.items():
            if kind == "semantic":
                scored = _maps(network, seen[remedy], truth_maps).scored(rows)
            else:
                objects = _boxes(network, seen[remedy], scenes, truth)
                assert objects.people is not None
                scored = _judged(objects, clean.setdefault(name, objects.people), rows)
            if condition not in conditions:
                continue
            values[name, condition] = {
                measure: (
                    scored.numbers[measure].astype(np.float32),
                    float(mean_of_known(scored.optimism[measure])) if measure in scored.optimism else np.nan,
                )
                for measure in MEASURES[kind]
            }
        print(f"{condition}: {time.monotonic() - begun:.1f} s", flush=True)
    return values


def _networks(
    weights: Sequence[Path], remedies: Sequence[str], device: torch.device
) -> dict[str, tuple[str, nn.Module, str]]:
    """Kind, network, and what changes its images: empty for nothing."""
    torch.backends.cudnn.benchmark = True
    opened: dict[str, tuple[str, nn.Module, str]] = {}
    for path in weights:
        network, log = load_weights(path)
        kind = log["training"]["network"]
        network = network.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        opened[path.stem] = kind, network, ""
    for name in remedies:
        known, _, remedy = name.partition("+")
        kind, network, _ = opened[known]
        opened[name] = (kind, _adapted(network), "") if remedy == "bn" else (kind, network, remedy)
    return opened


def _adapted(network: nn.Module) -> nn.Module:
    """The network normalising each batch by its own statistics."""
    other = deepcopy(network)
    for module in other.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.train()
            module.momentum = 0.0  # a batch leaves no trace
    return other


def _before(name: str, device: torch.device) -> Callable[[Tensor], Tensor]:
    """What changes N×H×W×3 images before a network: nothing, an enhancement of the package, or a painting."""
    if not name:
        return lambda images: images
    if name in RESTYLED:
        return Restyled(device, RESTYLED[name])
    from stormproof.models import enhance

    def change(image: Image) -> Image:
        return enhance.clahe(image) if name == "clahe" else enhance.nlm(image)

    def each(images: Tensor) -> Tensor:
        with ThreadPool() as threads:
            made = threads.map(change, images.cpu().numpy())
        return torch.from_numpy(np.stack(made)).to(device)

    return each


def _outputs(network: nn.Module, images: Tensor) -> dict[str, Tensor]:
    device = images.device.type
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        outputs: dict[str, Tensor] = network(normalised(images).contiguous(memory_format=torch.channels_last))
    return outputs


def _moved(condition: str, scenes: TestSet) -> npt.NDArray[np.uint8]:
    """The label maps of the scenes, moved by a condition that moves labels; detectors' boxes stay."""
    parsed = Condition.parse(condition)
    if not moves_labels(parsed):
        return scenes.semantic
    height, width = scenes.semantic.shape[1:]
    truths = (Truth(semantic=SemanticMap(labels, ignore=VOID)) for labels in scenes.semantic)
    moved = [
        truth_under(truth, (height, width), parsed, seed=0, image_id=name).semantic
        for truth, name in zip(truths, scenes.ids, strict=True)
    ]
    return np.stack([each.labels for each in moved if each is not None])


@torch.no_grad()
def _maps(network: nn.Module, images: Tensor, truth_maps: Tensor) -> Maps:
    side = len(SEMANTIC)
    tables = []
    for k in range(0, len(images), BATCH):
        logits = _outputs(network, images[k : k + BATCH])["logits"]
        size = list(images.shape[1:3])
        labels = functional.interpolate(
            logits.float(), size=size, mode="bilinear", align_corners=False
        ).argmax(1)
        truth = truth_maps[k : k + BATCH].long()
        pairs = torch.where(truth == VOID, side * side, truth * side + labels)
        pairs += torch.arange(len(pairs), device=pairs.device)[:, None, None] * (side * side + 1)
        counts = torch.bincount(pairs.flatten(), minlength=len(pairs) * (side * side + 1))
        tables.append(counts.view(len(pairs), -1)[:, :-1].cpu().numpy())
    image, cell = np.nonzero(table := np.concatenate(tables))
    return Maps.of(
        image, cell // side, cell % side, table[image, cell],
        images=len(images), classes=SEMANTIC, kept=range(side),
    )  # fmt: skip


@torch.no_grad()
def _boxes(network: nn.Module, images: Tensor, scenes: TestSet, truth: DetectionTruth) -> Objects:
    predictions: dict[str, Prediction] = {}
    for k in range(0, len(images), BATCH):
        outputs = _outputs(network, images[k : k + BATCH])
        each = detections(outputs, (images.shape[1], images.shape[2]))
        predictions |= dict(zip(scenes.ids[k : k + BATCH], each, strict=True))
    return Objects(truth, lay_out(predictions, truth), person=PERSON)


def _judged(objects: Objects, clean: People, weights: npt.NDArray[np.uint8]) -> Scored:
    """AP, *liu*'s E, and *pezzementi*'s ADR at the sensitivities of the clean images."""
    assert objects.people is not None
    rates, _ = objects.people.rates(weights, clean.sensitivities(weights))
    people = Scored({"ADR": rates.mean(axis=(1, 2))})
    return coco_scored(objects.boxes, weights) | objects.errors.scored(weights) | people


def detections(outputs: dict[str, Tensor], size: tuple[int, int]) -> list[Prediction]:
    """The objects of every image, as the exported networks find them."""
    height, width = size
    results = []
    for one in found("grid", outputs, size):
        sure = one.scores >= LEAST
        boxes = torch.minimum(one.boxes[sure].clamp(min=0), constant((width, height) * 2, one.boxes.device))
        boxes, scores, labels = (t.cpu() for t in (boxes, one.scores[sure], one.labels[sure]))
        results.append(Prediction(boxes.numpy(), scores.numpy(), labels.numpy()))
    return results


def spread(
    weights: Sequence[Path], conditions: Sequence[str], scenes: TestSet, *, replicates: int,
    remedies: Sequence[str], workers: int, out: Path,
) -> None:  # fmt: skip
    """Share the conditions between processes, and write what they find to one file."""
    context = multiprocessing.get_context("spawn")
    shares = [list(conditions[k::workers]) for k in range(workers)]
    with context.Pool(workers) as processes:
        parts = processes.starmap(
            _share, [(weights, share, scenes, replicates, remedies) for share in shares if share]
        )
    save({key: value for part in parts for key, value in part.items()}, scenes.ids, out)


def _share(
    weights: Sequence[Path],
    conditions: Sequence[str],
    scenes: TestSet,
    replicates: int,
    remedies: Sequence[str],
) -> dict[tuple[str, str], Any]:
    torch.set_num_threads(1)
    return storm(weights, conditions, scenes, replicates=replicates, remedies=remedies)


def save(values: dict[tuple[str, str], Any], ids: Sequence[str], out: Path) -> None:
    """Write `NETWORK/MEASURE`, scores by condition, and `NETWORK/MEASURE/drawn`: optimism, then halves."""
    conditions = list(dict.fromkeys(condition for _, condition in values))
    arrays: dict[str, Any] = {"conditions": np.array(conditions), "ids": np.array(ids)}
    for network in dict.fromkeys(name for name, _ in values):
        for measure in values[network, conditions[0]]:
            cells = [values[network, condition][measure] for condition in conditions]
            arrays[f"{network}/{measure}"] = np.array([drawn[0] for drawn, _ in cells], np.float32)
            rest = [np.concatenate([[optimism], drawn[1:]]) for drawn, optimism in cells]
            arrays[f"{network}/{measure}/drawn"] = np.array(rest, np.float16)
    np.savez_compressed(out, **arrays)
