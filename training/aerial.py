"""A small detector of oriented boxes, trained on drawn scenes seen from above: cars, lorries and boats.

    python -m training.aerial scenes FOLDER          # a DOTA folder to test on
    python -m training.aerial train WEIGHTS          # with other scenes, on a GPU
    python -m training.aerial export WEIGHTS FILE    # ONNX as YOLO-OBB's exports, or TorchScript (.pt)

Scenes are a function of their number: numbers from 0 on are to test on, from TRAINING on to train on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.functional import interpolate

Array = npt.NDArray[Any]
Shape = Sequence[tuple[float, float]]
SIDE, STRIDE, TRAINING = 384, 4, 1_000_000
CLASSES = ("car", "lorry", "boat")
# Length in pixels and breadth as a share of it.
SIZES = {"car": ((26, 42), (0.42, 0.5)), "lorry": ((52, 84), (0.24, 0.3)), "boat": ((30, 76), (0.28, 0.4))}

SQUARE: Shape = ((-1, -1), (1, -1), (1, 1), (-1, 1))


def draw_scene(number: int) -> tuple[Array, Array, Array]:
    """An RGB image, the boxes n×5 (centre, length, breadth, angle in radians) and the labels."""
    rng = np.random.default_rng(number)
    image, water = _ground(rng)
    boxes: list[tuple[float, ...]] = []
    labels: list[int] = []
    for _ in range(int(rng.integers(6, 40))):
        x, y, angle = rng.uniform(10, SIDE - 10), rng.uniform(10, SIDE - 10), rng.uniform(-np.pi, np.pi)
        wet = bool(water[int(y), int(x)])
        label = 2 if wet else int(rng.random() < 0.3)
        (shortest, longest), shares = SIZES[CLASSES[label]]
        length = rng.uniform(shortest, longest)
        if any(np.hypot(x - a, y - b) < 0.55 * (length + c) for a, b, c, *_ in boxes):
            continue
        boxes.append((x, y, length, length * rng.uniform(*shares), angle))
        labels.append(label)
        _draw(image, rng, CLASSES[label], boxes[-1])
    noisy = cv2.GaussianBlur(image, (0, 0), 0.6) + rng.normal(0, rng.uniform(1, 5), image.shape)
    return noisy.clip(0, 255).astype(np.uint8), np.array(boxes).reshape(-1, 5), np.array(labels, np.int64)


def _ground(rng: np.random.Generator) -> tuple[Array, Array]:
    """Fields, roads, roofs and trees as floats, and where there is water."""
    ys, xs = np.mgrid[:SIDE, :SIDE] / SIDE - 0.5
    turn, shore = rng.uniform(0, 2 * np.pi), rng.uniform(-0.5, 0.4)
    coarse = cv2.resize(rng.normal(0, 1, (12, 12)), (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
    water = np.cos(turn) * xs + np.sin(turn) * ys + 0.03 * coarse < shore - 0.25
    land, sea = rng.uniform((60, 70, 50), (150, 140, 110)), rng.uniform((20, 50, 70), (70, 100, 120))
    image: Array = np.where(water[..., None], sea, land) + 10 * coarse[..., None]
    image += rng.normal(0, 1, (SIDE // 2, SIDE // 2, 1)).repeat(2, 0).repeat(2, 1) * rng.uniform(1, 6)
    dry = image.copy()
    for _ in range(int(rng.integers(1, 4))):  # roads
        a, b = rng.integers(0, SIDE, (2, 2)) + rng.integers(-SIDE, SIDE, (2, 2))
        cv2.line(dry, a.tolist(), b.tolist(), [float(rng.uniform(70, 120))] * 3, int(rng.integers(20, 60)))
        cv2.line(dry, a.tolist(), b.tolist(), [200.0] * 3, 1, cv2.LINE_AA)
    for _ in range(int(rng.integers(0, 5))):  # roofs, which nobody looks for
        box = (*rng.uniform(0, SIDE, 2), rng.uniform(40, 110), rng.uniform(40, 90), rng.uniform(0, np.pi))
        _fill(dry, box, SQUARE, rng.uniform(60, 180, 3))
    for _ in range(int(rng.integers(0, 25))):  # trees
        colour = rng.uniform((20, 50, 15), (70, 100, 50))
        cv2.circle(dry, rng.integers(0, SIDE, 2).tolist(), int(rng.integers(4, 16)), colour.tolist(), -1)
    return np.where(water[..., None], image, dry).astype(np.float32), water


def _draw(image: Array, rng: np.random.Generator, kind: str, box: tuple[float, ...]) -> None:
    """One vehicle or boat; shapes are in halves of its length and breadth, front at +1."""
    x, y, *rest = box
    block: Shape = ((-1, -0.8), (-0.9, -1), (0.85, -1), (1, -0.6), (1, 0.6), (0.85, 1), (-0.9, 1), (-1, 0.8))
    hull: Shape = ((-1, -0.8), (0.2, -1), (0.7, -0.6), (1, 0), (0.7, 0.6), (0.2, 1), (-1, 0.8))
    shape = hull if kind == "boat" else block
    paint = rng.uniform(30, 240) + rng.uniform(-50, 50, 3)
    _fill(image, (x + 2, y + 3, *rest), shape, (35, 35, 35))
    _fill(image, box, shape, paint)
    if kind == "car":
        for front, back in ((0.45, 0.2), (-0.55, -0.75)):
            _fill(image, box, _bar(back, front, 0.8), (30, 35, 45))
    elif kind == "lorry":
        _fill(image, box, _bar(-1, 0.6, 1), rng.uniform(120, 240, 3))
    else:
        _fill(image, box, _bar(-0.8, 0.3, 0.4), paint * 0.6 + 60)


def _bar(back: float, front: float, half: float) -> Shape:
    return (back, -half), (front, -half), (front, half), (back, half)


def _fill(image: Array, box: tuple[float, ...], shape: Shape, colour: npt.ArrayLike) -> None:
    points = np.array(shape) * np.array(box[2:4]) / 2 @ turn(box[4]) + box[:2]
    paint = np.clip(np.asarray(colour, float), 0, 255).tolist()
    cv2.fillConvexPoly(image, np.round(points * 16).astype(np.int32), paint, cv2.LINE_8, 4)


def turn(angle: float) -> Array:
    """What turns row vectors clockwise in an image, whose y axis points down."""
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def write_scenes(folder: Path, count: int) -> None:
    for name in ("images", "labelTxt"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        image, boxes, labels = draw_scene(number)
        cv2.imwrite(str(folder / f"images/{number:04d}.png"), image[..., ::-1])
        lines = []
        for box, label in zip(boxes, labels, strict=True):
            corners = np.array(SQUARE) * box[2:4] / 2 @ turn(box[4]) + box[:2]
            lines.append(" ".join(f"{value:.2f}" for value in corners.ravel()) + f" {CLASSES[label]} 0\n")
        (folder / f"labelTxt/{number:04d}.txt").write_text("".join(lines))


class Aerial(nn.Module):
    """Heat maps of centres at a quarter of the size, and at each place sides, angle and the exact centre.

    It answers as YOLO-OBB networks do: (4 + classes + 1) × places, in pixels, the angle in radians.
    """

    grid: torch.Tensor

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        w, w2, w4 = width, 2 * width, 4 * width
        self.fourth = nn.Sequential(_conv(3, w, 2), _conv(w, w2, 2), _conv(w2, w2))
        self.eighth = nn.Sequential(_conv(w2, w4, 2), _conv(w4, w4))
        self.sixteenth = nn.Sequential(_conv(w4, w4, 2), _conv(w4, w4), _conv(w4, w4), _conv(w4, w4))
        self.up, self.out = _conv(w4, w4), _conv(w4, w2)
        self.side = nn.Conv2d(w2, w4, 1)
        last = nn.Conv2d(w2, len(CLASSES), 1)
        nn.init.constant_(last.state_dict()["bias"], -4.6)  # at first, one place in a hundred
        self.heat = nn.Sequential(_conv(w2, w2), last)
        self.shape = nn.Sequential(_conv(w2, w2), nn.Conv2d(w2, 6, 1))
        cells = SIDE // STRIDE
        ys, xs = torch.meshgrid(torch.arange(cells), torch.arange(cells), indexing="ij")
        self.register_buffer("grid", torch.stack([xs, ys]).float()[None])

    def maps(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        four = self.fourth(x)
        eight = self.eighth(four)
        eight = self.up(eight + interpolate(self.sixteenth(eight), scale_factor=2.0))
        four = self.out(self.side(four) + interpolate(eight, scale_factor=2.0))
        return self.heat(four), self.shape(four)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heat, shape = self.maps(x)
        centre = (self.grid + shape[:, :2]) * STRIDE
        angle = torch.atan2(shape[:, 5:6], shape[:, 4:5]) / 2
        answer = torch.cat([centre, shape[:, 2:4].exp() * 32, heat.sigmoid(), angle], dim=1)
        return answer.flatten(2)


def _conv(ins: int, outs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(ins, outs, 3, stride, 1, bias=False), nn.BatchNorm2d(outs), nn.ReLU())


def _example(number: int) -> tuple[Array, Array, Array]:
    """An image, the heat of each class (Gaussians), and what to regress."""
    image, boxes, labels = draw_scene(number)
    cells = SIDE // STRIDE
    heat, wanted = np.zeros((len(CLASSES), cells, cells), np.float16), np.zeros((7, cells, cells), np.float16)
    ys, xs = np.mgrid[:cells, :cells]
    for (x, y, length, breadth, angle), label in zip(boxes, labels, strict=True):
        column, row = int(x / STRIDE), int(y / STRIDE)
        spread = max(0.7, breadth / STRIDE / 5)
        near = np.exp(-((xs - column) ** 2 + (ys - row) ** 2) / (2 * spread**2))
        heat[label] = np.maximum(heat[label], near)
        form = np.log(length / 32), np.log(breadth / 32), np.cos(2 * angle), np.sin(2 * angle)
        for r in range(max(row - 1, 0), min(row + 2, cells)):  # neighbours learn the shape too
            for c in range(max(column - 1, 0), min(column + 2, cells)):
                wanted[:, r, c] = x / STRIDE - c, y / STRIDE - r, *form, 1
    return image, heat, wanted


def train(weights: Path, *, images: int, steps: int, batch: int, device: str, workers: int) -> None:
    with get_context("fork").Pool(workers) as pool:
        examples = pool.map(_example, range(TRAINING, TRAINING + images), chunksize=16)
    pixels, heats, wanted = (
        torch.from_numpy(np.stack(part)).to(device) for part in zip(*examples, strict=True)
    )
    torch.manual_seed(0)
    net = Aerial().to(device).train()
    optimiser = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps)
    for step in range(steps):
        chosen = torch.randint(images, (batch,), device=device)
        given = pixels[chosen].permute(0, 3, 1, 2).float() / 255
        with torch.autocast(device, torch.bfloat16):
            heat, shape = net.maps(given)
        loss = _loss(heat.float(), shape.float(), heats[chosen].float(), wanted[chosen].float())
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    torch.save(net.cpu().state_dict(), weights)


def _loss(heat: torch.Tensor, shape: torch.Tensor, hot: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """CenterNet's focal loss of the heat, and the distance of shapes near centres."""
    chance = heat.sigmoid().clamp(1e-4, 1 - 1e-4)
    centre = hot >= 0.999
    found = torch.where(
        centre, (1 - chance) ** 2 * chance.log(), (1 - hot) ** 4 * chance**2 * (1 - chance).log()
    )
    place = wanted[:, 6:]
    apart = (shape - wanted[:, :6]).abs() * place
    return -found.sum() / centre.sum().clamp(min=1) + apart.sum() / place.sum().clamp(min=1)


def load(weights: Path) -> Aerial:
    net = Aerial()
    net.load_state_dict(torch.load(weights, weights_only=True))
    return net.eval()


def export(weights: Path, out: Path) -> None:
    """An ONNX file with the notes that YOLO-OBB exports carry, or TorchScript if it ends in .pt."""
    net, given = load(weights), torch.zeros(1, 3, SIDE, SIDE)
    if out.suffix == ".pt":
        torch.jit.trace(net, given).save(str(out))  # type: ignore[no-untyped-call]
        return
    import onnx

    torch.onnx.export(net, (given,), str(out), input_names=["images"], output_names=["output0"], dynamo=False)
    model = onnx.load(str(out))
    notes = {"task": "obb", "names": str(dict(enumerate(CLASSES))), "stride": str(STRIDE)}
    onnx.helper.set_model_props(model, notes)
    onnx.save(model, str(out))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=["scenes", "train", "export"])
    parser.add_argument("paths", type=Path, nargs="+")
    for name, usual in {"count": 100, "images": 6000, "steps": 1500, "batch": 64, "workers": 16}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--device", default="cuda")
    given = vars(parser.parse_args())
    verb, paths, count = (given.pop(key) for key in ("verb", "paths", "count"))
    if verb == "scenes":
        write_scenes(paths[0], count)
    elif verb == "export":
        export(*paths)
    else:
        train(*paths, **given)


if __name__ == "__main__":
    main()
