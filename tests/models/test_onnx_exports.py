"""transformers' networks exported to ONNX say what they say in transformers, read by the graph alone.

The networks are tiny and their weights random, drawn so that places, queries and classes clearly differ.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import cv2
import numpy as np
import pytest

from stormproof.core.sample import Prediction
from stormproof.models import load_model

torch = pytest.importorskip("torch", reason="needs the extra 'hf'")
T = pytest.importorskip("transformers", reason="needs the extra 'hf'")
pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")

# A image larger than the networks want and of other proportions, so that it is shrunk on the way.
IMAGE = cv2.resize(
    np.random.default_rng(0).integers(0, 255, (20, 14, 3), dtype=np.uint8),
    (280, 400),
    interpolation=cv2.INTER_CUBIC,
)
SIZE = {"height": 96, "width": 128}
SQUARE = {"height": 96, "width": 96}
SMALL = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_queries": 12,
    "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None,
}  # fmt: skip


def names(count: int) -> dict[int, str]:
    return {i: f"class {i}" for i in range(count)}


def resnet():
    stages = ["stage1", "stage2", "stage3", "stage4"]
    return T.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], out_features=stages
    )


def detr():
    config = T.DetrConfig(backbone_config=resnet(), id2label=names(91), **SMALL)
    return T.DetrForObjectDetection(config), T.DetrImageProcessor(size=SIZE, do_pad=False)


def conditional_detr():
    config = T.ConditionalDetrConfig(backbone_config=resnet(), id2label=names(91), **SMALL)
    processor = T.ConditionalDetrImageProcessor(size=SIZE, do_pad=False)
    return T.ConditionalDetrForObjectDetection(config), processor


def yolos():
    config = T.YolosConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=[96, 128],
        num_detection_tokens=12,
        id2label=names(91),
    )
    return T.YolosForObjectDetection(config), T.YolosImageProcessor(size=SIZE, do_pad=False)


def rt_detr():
    stages = ["stage2", "stage3", "stage4"]
    backbone = T.RTDetrResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 16, 16],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=stages,
    )
    config = T.RTDetrConfig(
        backbone_config=backbone,
        encoder_hidden_dim=32,
        encoder_in_channels=[16, 16, 16],
        encoder_ffn_dim=32,
        encoder_attention_heads=2,
        d_model=32,
        num_queries=12,
        decoder_in_channels=[32, 32, 32],
        decoder_ffn_dim=32,
        decoder_layers=2,
        decoder_attention_heads=2,
        id2label=names(80),
    )
    return T.RTDetrForObjectDetection(config), T.RTDetrImageProcessor(size=SQUARE)


def segformer():
    config = T.SegformerConfig(
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        decoder_hidden_size=16,
        num_attention_heads=[1, 1, 2, 2],
        id2label=names(19),
    )
    return T.SegformerForSemanticSegmentation(config), T.SegformerImageProcessor(size=SQUARE)


def enliven(net) -> None:
    """Weights of unit gain: as they are made, all queries would say much the same."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in net.named_parameters():
            if weight.ndim < 2:
                continue
            gain = 2.5 if "class" in name or "score" in name else 1.0
            embedding = "embeddings.weight" in name or "tokens" in name
            fan = 1 if embedding else weight[0].numel()
            weight.copy_(torch.randn(weight.shape, generator=generator) * gain / fan**0.5)


class Plain(torch.nn.Module):
    """The outputs that matter, as a tuple."""

    def __init__(self, net, outputs) -> None:
        super().__init__()
        self.net, self.outputs = net, outputs

    def forward(self, pixel_values, pixel_mask=None):
        more = {} if pixel_mask is None else {"pixel_mask": pixel_mask}
        answer = self.net(pixel_values=pixel_values, **more)
        return tuple(answer[name] for name in self.outputs)


def export(folder: Path, make, *, mask=False, free=False) -> tuple[str, Path]:
    """The network as transformers saves it and as ONNX, for one size of input or (`free`) for any."""
    torch.manual_seed(0)
    net, processor = make()
    enliven(net)
    net.eval().save_pretrained(folder / "hf")
    processor.save_pretrained(folder / "hf")
    outputs = ["logits"] if make is segformer else ["logits", "pred_boxes"]
    inputs = ["pixel_values", "pixel_mask"] if mask else ["pixel_values"]
    sides = processor.size["height"], processor.size["width"]
    example = (torch.zeros(1, 3, *sides), *([torch.ones(1, *sides, dtype=torch.int64)] if mask else []))
    axes = {"pixel_values": {0: "n", 2: "h", 3: "w"}, "pixel_mask": {0: "n", 1: "h", 2: "w"}}
    path = folder / "net.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Plain(net, outputs).eval(),
            example,
            str(path),
            dynamo=False,
            opset_version=17,
            input_names=inputs,
            output_names=outputs,
            dynamic_axes={name: axes[name] for name in inputs} if free else None,
        )
    return f"hf:{folder}/hf,score=0.01", path


def assert_alike(found: Prediction, wanted: Prediction, offset: int) -> None:
    """The same boxes with the same scores and labels, in any order."""
    kept = wanted.labels + offset >= 0
    rows = np.column_stack([wanted.boxes, 100 * wanted.scores, 1000 * (wanted.labels + offset)])[kept]
    ours = np.column_stack([found.boxes, 100 * found.scores, 1000 * found.labels])
    assert len(rows) > 5
    assert len({*found.scores.round(4)}) > 5  # else nothing would be shown
    apart = np.abs(ours[:, None] - rows[None]).max(axis=2)
    assert apart.min(axis=0).max() < 0.01
    assert apart.min(axis=1).max() < 0.01


@pytest.mark.parametrize(
    ("make", "decoder", "offset"),
    [(detr, "detr", -1), (conditional_detr, "rtdetr", -1), (yolos, "detr", -1), (rt_detr, "rtdetr", 0)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_exported_detectors_need_no_card(tmp_path: Path, make, decoder: str, offset: int) -> None:
    theirs, path = export(tmp_path, make)
    (wanted,) = load_model(theirs)([IMAGE])
    model = load_model(f"onnx:{path},keep={len(wanted)}")
    assert (model.card.decoder, model.card.label_offset) == (decoder, offset)
    assert_alike(model([IMAGE])[0], wanted, offset)


def test_detr_gets_the_mask_it_asks_for_and_is_scaled_by_the_short_side(tmp_path: Path) -> None:
    """Sizes are cut where other detectors round: one column more would move every box."""
    theirs, path = export(tmp_path, detr, mask=True, free=True)
    path.with_suffix(".yaml").write_text("input: {size: [96, 128]}\n")
    assert_alike(load_model(f"onnx:{path}")([IMAGE])[0], load_model(theirs)([IMAGE])[0], -1)
    T.DetrImageProcessor(size={"shortest_edge": 96, "longest_edge": 140}).save_pretrained(tmp_path / "hf")
    path.with_suffix(".yaml").write_text("input: {size: [96, 140], resize: shortest}\n")
    ours, reference = load_model(f"onnx:{path}"), load_model(theirs)
    for image in (IMAGE, IMAGE[:330], IMAGE[:111], IMAGE[:, :100]):
        assert_alike(ours([image])[0], reference([image])[0], -1)


@pytest.mark.parametrize("free", [False, True])
def test_an_exported_segmenter_needs_no_card(tmp_path: Path, free: bool) -> None:
    theirs, path = export(tmp_path, segformer, free=free)
    path.with_suffix(".yaml").write_text("input: {size: 96, interpolation: antialias}\n")
    model = load_model(f"onnx:{path}")
    assert (model.card.decoder, model.card.classes) == ("logits", "cityscapes19")
    found, wanted = model([IMAGE])[0].semantic, load_model(theirs)([IMAGE])[0].semantic
    assert len(np.unique(wanted)) > 2
    assert (found == wanted).mean() > 0.9999
