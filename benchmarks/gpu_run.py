"""A detector under a suite, corrupted on the CPU and on a GPU: whether it says the same, and what it costs.

    python benchmarks/gpu_run.py weights rcnn.pth        an untrained Faster R-CNN that says something
    python benchmarks/gpu_run.py run runs/cpu --model SPEC --data coco:val.json --workers 4
    python benchmarks/gpu_run.py run runs/gpu --model SPEC --data coco:val.json --device cuda
    python benchmarks/gpu_run.py compare runs/cpu runs/gpu --out CELLS.json      for docs/make_gpu.py
    python benchmarks/gpu_run.py beside runs/beside --data coco:val.json --batch 32 --out BESIDE.json
                                                         models in a run, and alone on the same pixels;
                                                         --workers 2: in as many processes

SPEC is torchvision:fasterrcnn_resnet50_fpn,weights=rcnn.pth,device=cuda, or another detector. `run` is
`stormproof run`, with its times. On a device two images go through first, untimed: kernels are compiled.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

FIELDS = ("labels", "scores", "boxes")


def write_weights(file: Path) -> None:
    """Seeded weights, with heads scaled so that scores and boxes vary from place to place."""
    import torch
    from torchvision.models.detection import fasterrcnn_resnet50_fpn

    torch.manual_seed(0)
    small = {"min_size": 160, "rpn_pre_nms_top_n_test": 100}  # for the scaling alone; weights do not tell
    net = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, **small).eval()
    image = [torch.rand(3, 160, 224)]
    heads = (
        (net.rpn.head.cls_logits, 1.0), (net.rpn.head.bbox_pred, 0.3),
        (net.roi_heads.box_predictor.cls_score, 3.0), (net.roi_heads.box_predictor.bbox_pred, 1.0),
    )  # fmt: skip
    for layer, spread in heads:
        seen: list[torch.Tensor] = []
        hook = layer.register_forward_hook(lambda _, given, said: seen.append(said))  # noqa: B023
        with torch.inference_mode():
            net(image)
        hook.remove()
        said = seen[0].movedim(1, -1).flatten(0, -2)
        with torch.no_grad():
            gain = spread / said.std(0).mean().clamp(min=1e-9)
            layer.weight.mul_(gain)
            layer.bias.copy_((layer.bias - said.mean(0)) * gain)
    torch.save(net.state_dict(), file)
    with torch.inference_mode():
        print(f"{file}: {len(net(image)[0]['scores'])} objects in noise")


def run(folder: Path, given: argparse.Namespace) -> None:
    from rich.console import Console

    from stormproof.engine.config import make_config
    from stormproof.engine.progress import RunProgress
    from stormproof.engine.run import run

    settings = {
        "model": given.model, "data": given.data, "conditions": given.conditions, "batch": given.batch,
        "device": given.device, "limit": given.limit,
    }  # fmt: skip
    engine = {"engine": "pool", "workers": given.workers} if given.workers else {"engine": "local"}
    if given.device is not None:
        first = settings | {"limit": 2}
        run(make_config(first | engine | {"out": f"{folder}-first"}))
    config = make_config(settings | engine | {"out": str(folder)})
    times = asdict(run(config, [RunProgress(Console(stderr=True))]).times)
    share = times["corrupt"] / times["total"]
    folder.with_suffix(".json").write_text(json.dumps(times | {"share": share, "batch": given.batch}))
    print(f"{folder}: corrupting takes {100 * share:.2f} % of {times['total']:.1f} s; {times}", flush=True)


class FastDetector:
    """About as fast as a YOLO nano: ResNet-18 at 640×640 in half precision, the best 100 of its cells."""

    takes_tensors = True

    def __init__(self, *, device: str) -> None:
        import torch
        import torchvision

        torch.manual_seed(0)
        trunk = list(torchvision.models.resnet18(weights=None).children())[:-2]
        net = torch.nn.Sequential(*trunk, torch.nn.Conv2d(512, 84, 1)).eval().to(device)
        self.net = net.half().to(memory_format=torch.channels_last)
        self.device = device

    def __call__(self, images: list[Any]) -> list[dict[str, np.ndarray]]:
        import torch
        from torch.nn.functional import interpolate

        with torch.inference_mode():
            planes = [
                torch.as_tensor(one, device=self.device).permute(2, 0, 1)[None].half() for one in images
            ]
            inputs = torch.cat([interpolate(one / 255, (640, 640), mode="bilinear") for one in planes])
            cells = self.net(inputs.to(memory_format=torch.channels_last)).flatten(2).float().sigmoid()
            best, labels = cells[:, 4:].max(1)
            scores, places = best.topk(100, 1)
            corners = 300 * cells[:, :4].gather(2, places[:, None].expand(-1, 4, -1)).transpose(1, 2)
            boxes = torch.cat([corners[..., :2], corners[..., :2] + corners[..., 2:] + 1], -1)
            columns = (boxes, scores, labels.gather(1, places))
            parts = zip(*(column.cpu().numpy() for column in columns), strict=True)
        return [dict(zip(("boxes", "scores", "labels"), part, strict=True)) for part in parts]


def beside(folder: Path, given: argparse.Namespace) -> dict[str, dict[str, float]]:
    """By model: cells a second of a whole run, and images a second of the model alone on the same pixels."""
    import torch

    import stormproof

    device = given.device or "cuda"
    data = stormproof.open_dataset(given.data, limit=96)
    some = [torch.from_numpy(data[i].image.copy()).to(device) for i in range(len(data))]
    found: dict[str, dict[str, float]] = {}
    for name in given.models.split(","):
        model, bare = _opened(name, folder, device)
        with torch.inference_mode():
            alone = _images_a_second(bare, some, given.batch)
        torch.cuda.empty_cache()
        limit = given.limit or 512
        if name in _SLOW:
            limit = max(limit // _SLOW[name], 1)
        options = {"conditions": given.conditions, "batch": given.batch, "device": device}
        options |= {"engine": "pool", "workers": given.workers} if given.workers else {"engine": "local"}
        for count, out in ((4, folder / f"{name}-first"), (limit, folder / name)):  # the first to warm up
            start = time.perf_counter()
            run = stormproof.run(model, given.data, out=out, limit=count, progress=False, **options)
            spent = time.perf_counter() - start
        cells = limit * len(run.record.conditions)
        found[name] = {"alone": alone, "run": cells / spent, "share": cells / spent / alone}
        found[name] |= {"cells": cells, "seconds": spent}
        print(name, found[name], flush=True)
    return found


_SLOW = {"rcnn": 16, "rtdetr": 8, "yolo": 2}  # how many times fewer images they are given


def _opened(name: str, folder: Path, device: str) -> tuple[Any, Any]:
    """A model as `stormproof.run` takes it, and a function that runs it alone."""
    if name == "fast":
        return f"gpu_run:FastDetector,device={device}", FastDetector(device=device)
    import torch
    import torchvision

    import gpu_networks

    folder.mkdir(parents=True, exist_ok=True)
    if name == "rcnn":
        write_weights(weights := folder / "rcnn.pth")
        net = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None)
        net.load_state_dict(torch.load(weights))
        spec = f"torchvision:fasterrcnn_resnet50_fpn,weights={weights},device={device}"
    else:
        net, card = getattr(gpu_networks, name)(), folder / f"{name}.yaml"
        card.write_text(json.dumps(gpu_networks.CARDS[name]))
        spec = f"torch:gpu_networks:{name},card={card},device={device}"
    return spec, getattr(gpu_networks, f"bare_{name}")(net.to(device).eval())


def _images_a_second(call: Any, images: list[Any], batch: int, seconds: float = 4.0) -> float:
    import torch

    for _ in range(3):
        call(images[:batch])
    torch.cuda.synchronize() if images[0].is_cuda else None
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        first = count % max(1, len(images) - batch + 1)
        call(images[first : first + batch])
        count += batch
    return count / (time.perf_counter() - start)


def rows(folder: Path) -> Iterator[tuple[tuple[int, str], dict[str, np.ndarray]]]:
    import pyarrow.parquet as pq

    for part in sorted((folder / "parts").glob("part-*.parquet")):
        for row in pq.read_table(part).to_pylist():
            yield (row["index"], row["condition"]), {name: np.array(row[name]) for name in FIELDS}


def compare(cpu: Path, gpu: Path) -> dict[str, Any]:
    """Cell by cell: equal in every number, alike but for numbers, or with other objects."""
    one, two = dict(rows(cpu)), dict(rows(gpu))
    found: dict[str, Any] = {"cells": len(one), "missing": len(one.keys() ^ two.keys())}
    found |= {"equal": 0, "objects": 0, "other objects": [], "largest score": 0.0, "largest box": 0.0}
    for cell in sorted(one.keys() & two.keys()):
        a, b = one[cell], two[cell]
        found["objects"] += len(a["scores"])
        if all(np.array_equal(a[name], b[name]) for name in FIELDS):
            found["equal"] += 1
        elif a["labels"].shape != b["labels"].shape or (a["labels"] != b["labels"]).any():
            found["other objects"].append(cell)
        else:
            for name, key in (("scores", "largest score"), ("boxes", "largest box")):
                found[key] = max(found[key], float(np.abs(a[name] - b[name]).max()))
    for name, folder in (("cpu", cpu), ("gpu", gpu)):
        found[name] = json.loads(folder.with_suffix(".json").read_text())
    found["model"] = json.loads((gpu / "run.json").read_text())["model"]["name"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=("weights", "run", "compare", "beside"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--data")
    parser.add_argument("--conditions", default="imagenet-c")
    parser.add_argument("--device")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--models", default="fast,rcnn,yolo,rtdetr")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.step == "weights":
        write_weights(*given.files)
    elif given.step == "run":
        run(*given.files, given)
    elif given.step == "beside":
        given.out.write_text(json.dumps(beside(*given.files, given)))
    else:
        found = compare(*given.files)
        print({key: value for key, value in found.items() if key != "other objects"})
        print(f"{len(found['other objects'])} cells with other objects: {found['other objects'][:5]}")
        if given.out:
            given.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
