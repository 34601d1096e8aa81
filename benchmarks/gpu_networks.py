"""Untrained networks of usual speed, for benchmarks/gpu_run.py: torch:gpu_networks:yolo and others.

Their weights are seeded, and scaled so that they find something everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torchvision
from torch import Tensor
from torch.nn.functional import interpolate

SIDE = 640
CARDS = {
    "yolo": {"decoder": "yolov8", "classes": "coco80",
             "input": {"resize": "letterbox", "size": [SIDE, SIDE], "pad": 114, "std": 255}},
    "rtdetr": {"decoder": "rtdetr", "classes": "coco80", "outputs": ["logits", "pred_boxes"],
               "input": {"resize": "stretch", "size": [SIDE, SIDE], "std": 255}},
}  # fmt: skip


class Yolo(torch.nn.Module):
    """ResNet-18 with heads at strides 8, 16 and 32: a table of 8,400 boxes, decoded, with 80 scores each."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        trunk = torchvision.models.resnet18(weights=None)
        stem = trunk.conv1, trunk.bn1, trunk.relu, trunk.maxpool, trunk.layer1, trunk.layer2
        self.steps = torch.nn.ModuleList([torch.nn.Sequential(*stem), trunk.layer3, trunk.layer4])
        self.heads = torch.nn.ModuleList(torch.nn.Conv2d(width, 84, 1) for width in (128, 256, 512))

    def forward(self, images: Tensor) -> Tensor:
        found = []
        for step, head, stride in zip(self.steps, self.heads, (8, 16, 32), strict=True):
            images = step(images)
            cells = head(images)
            down, across = (torch.arange(side, device=cells.device) for side in cells.shape[2:])
            rows, columns = torch.meshgrid(down, across, indexing="ij")
            middle = (torch.stack([columns, rows]) + 0.5) * stride + cells[:, :2]
            sides = (8 * cells[:, 2:4].sigmoid() + 1) * stride
            found.append(torch.cat([middle, sides, (2 * cells[:, 4:] - 9).sigmoid()], 1).flatten(2))
        return torch.cat(found, 2)


def yolo() -> torch.nn.Module:
    return Yolo()


class RtDetr(torch.nn.Module):
    """transformers' RT-DETR with ResNet-50."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import RTDetrConfig, RTDetrForObjectDetection

        torch.manual_seed(0)
        self.net = RTDetrForObjectDetection(RTDetrConfig(num_labels=80))

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        said = self.net(pixel_values=images)
        return {"logits": said.logits, "pred_boxes": said.pred_boxes}


def rtdetr() -> torch.nn.Module:
    return RtDetr()


def bare_rcnn(net: torch.nn.Module) -> Callable[[Sequence[Tensor]], Any]:
    """A torchvision detector as its own documentation calls it; images are H×W×3 bytes."""

    def call(images: Sequence[Tensor]) -> Any:
        given = [image.permute(2, 0, 1).float() / 255 for image in images]
        return [{key: value.cpu() for key, value in found.items()} for found in net(given)]

    return call


def bare_yolo(net: torch.nn.Module) -> Callable[[Sequence[Tensor]], Any]:
    """Letterbox, network, and torchvision's suppression image by image, as YOLO's own code does."""

    def call(images: Sequence[Tensor]) -> Any:
        return [_suppressed(table) for table in net(torch.cat([_letterbox(image) for image in images]))]

    return call


def _letterbox(image: Tensor) -> Tensor:
    ratio = SIDE / max(image.shape[:2])
    height, width = (round(side * ratio) for side in image.shape[:2])
    whole = image.new_full((1, 3, SIDE, SIDE), 114, dtype=torch.float32)
    top, left = (SIDE - height) // 2, (SIDE - width) // 2
    small = interpolate(image.permute(2, 0, 1)[None].float(), (height, width), mode="bilinear")
    whole[..., top : top + height, left : left + width] = small
    return whole / 255


def _suppressed(table: Tensor, score: float = 0.001, iou: float = 0.7, keep: int = 300) -> list[Tensor]:
    boxes, scores = table[:4].T, table[4:].T
    rows, labels = (scores >= score).nonzero(as_tuple=True)
    best = scores[rows, labels]
    if len(best) > 3000:
        best, places = best.topk(3000)
        rows, labels = rows[places], labels[places]
    corners = torchvision.ops.box_convert(boxes[rows], "cxcywh", "xyxy")
    stay = torchvision.ops.batched_nms(corners, best, labels, iou)[:keep]
    return [column[stay].cpu() for column in (corners, best, labels)]


def bare_rtdetr(net: torch.nn.Module) -> Callable[[Sequence[Tensor]], Any]:
    """Resize, network, and the best 300 of queries and classes, as transformers' own post-processing."""

    def call(images: Sequence[Tensor]) -> Any:
        planes = [image.permute(2, 0, 1)[None].float() / 255 for image in images]
        said = net(torch.cat([interpolate(one, (SIDE, SIDE), mode="bilinear") for one in planes]))
        best, places = said["logits"].sigmoid().flatten(1).topk(300)
        rows = (places // 80)[..., None].expand(-1, -1, 4)
        boxes = torchvision.ops.box_convert(said["pred_boxes"].gather(1, rows), "cxcywh", "xyxy")
        return [column.cpu() for column in (boxes, best, places % 80)]

    return call
