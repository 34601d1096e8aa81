"""torchvision's detectors and segmenters: `torchvision:fasterrcnn_resnet50_fpn[,weights=path.pth]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.loading import framework
from stormproof.models.card import complete_card
from stormproof.models.classes import resolve_classes
from stormproof.models.model import ADAPTERS, model_file
from stormproof.models.network import Network, usual_batch
from stormproof.models.torch import ModuleForward, fill, load_checkpoint, state_dict, torch_on

# By task: the card, the classes of the published weights, and the outputs beyond the class list.
_TASKS: dict[str, tuple[dict[str, Any], str, int]] = {
    "detection": ({"decoder": "torchvision", "label_offset": -1}, "coco91", 1),
    "segmentation": (
        {"decoder": "logits", "outputs": ["out"], "input": {"resize": "shortest", "size": [520, 4096]}},
        "voc21",
        0,
    ),
}


@ADAPTERS.declare("torchvision")
def open_torchvision(
    main: str,
    *,
    weights: str | None = None,
    classes: str | None = None,
    download: bool = False,
    threads: int = 1,
    batch: int | None = None,
    device: str = "cpu",
    score: float | None = None,
) -> Network:
    """Build a model by torchvision's name for it; `weights` is a state dict on disk.

    Without weights, `download=true` fetches torchvision's own. `classes` names the classes of your weights,
    without background for detectors; the published weights have COCO's or VOC's.
    """
    torch = torch_on(device, threads, extra="torchvision")
    vision = framework("torchvision", extra="torchvision")
    task = _task(vision, main)
    card, usual, extra = _TASKS[task]
    names = resolve_classes(classes or usual, None) or ()
    count = 91 if task == "detection" and classes is None else len(names) + extra
    net, path = _build(torch, vision, main, weights, download, count)
    given = {**card, **({} if score is None else {"score": score})}
    whole = complete_card({}, given, main)
    return Network(
        name=main if path is None else f"{main}-{path.stem}",
        card=whole,
        forward=ModuleForward(torch, net.to(device).eval(), whole, device),
        files=() if path is None else (path,),
        names=names,
        batch=usual_batch(batch, device),
        in_torch=True,
        takes_list=task == "detection",
    )


def _task(vision: Any, name: str) -> str:
    known = {task: vision.models.list_models(module=getattr(vision.models, task)) for task in _TASKS}
    for task, models in known.items():
        if name in models:
            return task
    everything = [model for models in known.values() for model in models]
    raise UnknownName("torchvision model", name, everything, "It must be a detector or a segmenter.")


def _build(
    torch: Any, vision: Any, name: str, weights: str | None, download: bool, count: int
) -> tuple[Any, Path | None]:
    """The module with its weights, and the file they came from."""
    if weights is not None:
        path = model_file(weights, "a state dict")
        saved = load_checkpoint(torch, path)
        # Segmenters are trained with a second head, which the published weights contain.
        second = any(key.startswith("aux_classifier") for key in state_dict(saved))
        head = {"aux_loss": True} if second else {}
        net = vision.models.get_model(name, weights=None, weights_backbone=None, num_classes=count, **head)
        fill(net, saved, path)
        return net, path
    if not download:
        fix = "give weights=path.pth, or download=true to let torchvision fetch its own"
        raise InvalidOption(f"torchvision:{name} has no weights; {fix}.")
    return vision.models.get_model(name, weights="DEFAULT"), None
