"""Train a small segmenter on the built-in street with `stormproof.watch`; its curve goes to integrations.md.

python docs/make_watch.py        # a few minutes on one core
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair
import numpy as np
import torch
from parts import write_part
from torch import Tensor, nn

import stormproof as sp
from stormproof.core.sample import Image, Sample

HERE = Path(__file__).parent
SIZE = "size=96x60"
SCENES, VAL = 200, 60  # to train on, and to watch on
EPOCHS, EVERY, BATCH = 40, 10, 8
SUITE, PRECISION = "weather", 2.0  # percentage points of mPC


def small_segmenter(classes: int) -> nn.Module:
    """Nine convolutions at half and a quarter of the size; one label per pixel."""

    def conv(inputs: int, outputs: int, *, stride: int = 1, dilation: int = 1) -> nn.Module:
        layer = nn.Conv2d(inputs, outputs, 3, stride, padding=dilation, dilation=dilation, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())

    return nn.Sequential(
        conv(3, 24, stride=2), conv(24, 32), conv(32, 64, stride=2), conv(64, 64),
        *(conv(64, 64, dilation=dilation) for dilation in (2, 4, 8, 1)),
        nn.Conv2d(64, classes, 1), nn.Upsample(scale_factor=4, mode="bilinear"),
    )  # fmt: skip


def tensors(images: Sequence[Image]) -> Tensor:
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 127.5 - 1


def train_one_epoch(
    network: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, maps: Tensor
) -> None:
    network.train()
    for chosen in torch.randperm(len(images)).split(BATCH):
        batch, truth = images[chosen], maps[chosen]
        if torch.rand(()) < 0.5:
            batch, truth = batch.flip(-1), truth.flip(-1)
        loss = nn.functional.cross_entropy(network(batch), truth, ignore_index=255)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def trained() -> sp.watch:
    """Train to the end; the watch holds what was read."""
    torch.manual_seed(0)
    scenes, val = (scenes_of(split, count) for split, count in (("train", SCENES), ("val", VAL)))
    images = tensors([scene.image for scene in scenes])
    maps = torch.from_numpy(np.stack([scene.truth.semantic.labels for scene in scenes])).long()
    network = small_segmenter(1 + int(maps[maps != 255].max()))
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)

    def predict(images: Sequence[Image]) -> list[np.ndarray]:
        network.eval()
        with torch.no_grad():
            return [label.astype(np.uint8) for label in network(tensors(images)).argmax(1).numpy()]

    watch = sp.watch(val, SUITE, every=EVERY, precision=PRECISION)
    for epoch in range(1, EPOCHS + 1):
        train_one_epoch(network, optimizer, images, maps)
        schedule.step()
        watch(epoch, predict)
    return watch


def scenes_of(split: str, count: int) -> list[Sample]:
    """Drawn once and kept, as a training would; so the watch need not draw them again."""
    return list(sp.open_dataset(f"world:{split},{SIZE}", limit=count))


def draw(watch: sp.watch) -> None:
    rows = []
    for r in watch.readings:
        for name, value, margin in (("P, clean", r.clean, 0.0), ("mPC", r.mpc, r.margin)):
            ends = {"low": 100 * (value - margin), "high": 100 * (value + margin)}
            rows.append({"epoch": r.step, "score": name, "mIoU (%)": 100 * value, **ends})
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X("epoch:Q", axis=altair.Axis(tickMinStep=EVERY)),
        color=altair.Color("score:N", title=None, scale=altair.Scale(range=["#d55e00", "#0072b2"])),
    )
    lines = base.mark_line(point=True).encode(
        y=altair.Y("mIoU (%):Q", title="mIoU (%)", scale=altair.Scale(zero=True))
    )
    spread = base.mark_rule(strokeWidth=2).encode(y=altair.Y("low:Q", title="mIoU (%)"), y2="high:Q")
    (lines + spread).properties(width=520, height=220, background="white").save(HERE / "watch.svg")


def page(watch: sp.watch) -> str:
    lines = [
        f"An example: a segmenter of nine convolutions is trained on {SCENES} scenes of "
        f"{SIZE.removeprefix('size=')} for {EPOCHS} epochs on one CPU core. Every {EVERY} epochs it is "
        f"scored on {VAL} other scenes under `{SUITE}`, with `precision={PRECISION:g}` "
        f"(`docs/make_watch.py`). The {len(watch.readings)} readings took {100 * watch.share:.0f} % of "
        "the time; the more images an epoch has, the smaller that share.",
        "",
        "![P and mPC of a segmenter by epoch, mPC with its interval](watch.svg)",
        "",
        "| epoch | P, clean | mPC | worst corruption | its mIoU |",
        "|---|---|---|---|---|",
    ]
    for r in watch.readings:
        mpc = f"{100 * r.mpc:.1f} ± {100 * r.margin:.1f}"
        lines.append(f"| {r.step} | {100 * r.clean:.1f} | {mpc} | {r.worst} | {100 * r.worst_score:.1f} |")
    return "\n".join(lines)


def main() -> None:
    torch.set_num_threads(1)
    watch = trained()
    draw(watch)
    write_part(HERE / "integrations.md", "watch", page(watch))


if __name__ == "__main__":
    main()
