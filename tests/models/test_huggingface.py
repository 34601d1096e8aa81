"""transformers: tiny networks built from configs, nothing to fetch, saved and opened like real ones."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase
from types import SimpleNamespace

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.sample import SEGMENTS
from stormproof.models import load_model
from stormproof.models.huggingface import _panoptic

torch = pytest.importorskip("torch", reason="needs the extra 'hf'")
T = pytest.importorskip("transformers", reason="needs the extra 'hf'")

from stormproof.models.on_device.processors import DeviceProcessor

IMAGE = np.random.default_rng(0).integers(0, 255, (45, 60, 3), dtype=np.uint8)
STAGES = ["stage1", "stage2", "stage3", "stage4"]
EDGES = {"shortest_edge": 64, "longest_edge": 96}


def detr(folder: Path) -> Path:
    backbone = T.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], out_features=STAGES
    )
    config = tiny_detr(backbone, num_queries=10, id2label={0: "N/A", 1: "person", 2: "car"})
    return save(folder, T.DetrForObjectDetection(config), T.DetrImageProcessor(size=EDGES))


def tiny_detr(backbone, **others) -> T.DetrConfig:
    return T.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone,
        d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=16, decoder_ffn_dim=16,
        encoder_attention_heads=2, decoder_attention_heads=2, **others,
    )  # fmt: skip


def swin() -> T.SwinConfig:
    return T.SwinConfig(
        image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4,
        out_features=STAGES,
    )  # fmt: skip


def small() -> dict[str, object]:
    """What the configurations of Mask2Former and OneFormer have in common."""
    return {
        "backbone_config": swin(), "use_pretrained_backbone": False, "hidden_dim": 32, "decoder_layers": 2,
        "encoder_feedforward_dim": 16, "dim_feedforward": 16, "num_attention_heads": 2, "num_queries": 8,
        "id2label": {0: "cat", 1: "dog"},
    }  # fmt: skip


def mask2former(folder: Path) -> Path:
    config = T.Mask2FormerConfig(**small(), feature_size=32, mask_feature_size=32, encoder_layers=1)
    processor = T.Mask2FormerImageProcessor(size=EDGES, ignore_index=255)
    return save(folder, T.Mask2FormerForUniversalSegmentation(config), processor)


def maskformer(folder: Path) -> Path:
    config = T.MaskFormerConfig(
        backbone_config=swin(),
        decoder_config=tiny_detr(T.ResNetConfig(), num_queries=8),
        fpn_feature_size=32,
        mask_feature_size=32,
        id2label={0: "cat", 1: "dog"},
    )
    processor = T.MaskFormerImageProcessor(size=EDGES, ignore_index=255)
    return save(folder, eager(T.MaskFormerForInstanceSegmentation(config)), processor)


def oneformer(folder: Path) -> Path:
    """With a tokenizer that spells, since its task is a sentence."""
    config = T.OneFormerConfig(
        **small(),
        conv_dim=32,
        mask_dim=32,
        encoder_layers=2,
        query_dec_layers=1,
        text_encoder_width=32,
        text_encoder_num_layers=1,
        text_encoder_vocab_size=60,
        is_training=False,
    )
    folder.mkdir()
    kinds = {str(k): {"name": name, "isthing": 1} for k, name in config.id2label.items()}
    (folder / "kinds.json").write_text(json.dumps(kinds))
    tokens = [*ascii_lowercase, *(f"{letter}</w>" for letter in ascii_lowercase)]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    images = T.OneFormerImageProcessor(
        size=EDGES, ignore_index=255, repo_path=str(folder), class_info_file="kinds.json", num_text=4
    )
    words = T.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    net = eager(T.OneFormerForUniversalSegmentation(config))
    return save(folder, net, T.OneFormerProcessor(images, words))


def eager(net):
    """A network that is sure of one of its two classes for every query, never of nothing."""
    for layer in net.modules():
        if isinstance(layer, torch.nn.Linear) and layer.out_features == 3:
            layer.weight.data *= 100
            layer.bias.data[-1] -= 1000
    return net


def segformer(folder: Path) -> Path:
    config = T.SegformerConfig(
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        decoder_hidden_size=8,
        num_attention_heads=[1, 1, 2, 2],
        id2label={0: "road", 1: "sky", 2: "car"},
    )
    processor = T.SegformerImageProcessor(size={"height": 64, "width": 64})
    return save(folder, T.SegformerForSemanticSegmentation(config), processor)


def rt_detr(folder: Path) -> Path:
    backbone = T.RTDetrResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], out_features=STAGES[1:],
        layer_type="basic",
    )  # fmt: skip
    config = T.RTDetrConfig(
        backbone_config=backbone, encoder_hidden_dim=16, d_model=16, num_queries=12, decoder_layers=1,
        encoder_in_channels=[8, 16, 16], decoder_in_channels=[16, 16, 16], encoder_ffn_dim=16,
        decoder_ffn_dim=16, encoder_attention_heads=2, decoder_attention_heads=2, hidden_expansion=0.5,
        id2label={0: "person", 1: "car"},
    )  # fmt: skip
    processor = T.RTDetrImageProcessor(size={"height": 64, "width": 64})
    return save(folder, T.RTDetrForObjectDetection(config), processor)


def yolos(folder: Path) -> Path:
    config = T.YolosConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=[64, 96],
        num_detection_tokens=6, id2label={0: "N/A", 1: "person", 2: "car"},
    )  # fmt: skip
    processor = T.YolosImageProcessor(size=EDGES)
    return save(folder, T.YolosForObjectDetection(config), processor)


def save(folder: Path, net, processor) -> Path:
    net.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def test_runs_detr(tmp_path: Path) -> None:
    model = load_model(f"hf:{detr(tmp_path / 'detr')},score=0")
    assert model.name == "detr"
    assert model.classes == ("N/A", "person", "car")
    assert model.semantic_classes == ()
    first, second = model([IMAGE, IMAGE[:30]])
    assert len(first) == 10
    assert first.boxes.min() >= 0
    assert (first.boxes.max(axis=0) <= [60, 45, 60, 45]).all()
    (alone,) = model([IMAGE[:30]])  # a neighbour in the batch changes nothing
    assert np.array_equal(second.boxes, alone.boxes)
    assert np.array_equal(second.scores, alone.scores)


def test_boxes_equal_those_of_transformers(tmp_path: Path) -> None:
    """Read without the adapter: centre and sides as fractions, the last class standing for nothing."""
    folder = detr(tmp_path / "detr")
    (found,) = load_model(f"hf:{folder},score=0")([IMAGE])
    net = T.AutoModelForObjectDetection.from_pretrained(folder).eval()
    inputs = T.AutoImageProcessor.from_pretrained(folder)(images=IMAGE, return_tensors="pt")
    with torch.inference_mode():
        outputs = net(**inputs)
    scores = outputs.logits.softmax(-1)[0, :, :-1].max(-1).values.numpy()
    x, y, w, h = (outputs.pred_boxes[0].numpy() * [60, 45, 60, 45]).T
    assert np.sort(found.scores) == pytest.approx(np.sort(scores), abs=1e-6)
    assert found.boxes == pytest.approx(
        np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=1), abs=1e-3
    )


def test_runs_mask2former_for_instances_and_for_a_map(tmp_path: Path) -> None:
    folder = mask2former(tmp_path / "m2f")
    model = load_model(f"hf:{folder},score=0")
    assert model.classes == ("cat", "dog")
    (found,) = model([IMAGE])
    assert found.masks is not None
    assert len(found) > 0
    assert all(mask.size == (45, 60) for mask in found.masks)
    semantic = load_model(f"hf:{folder},task=semantic")
    assert semantic.semantic_classes == ("cat", "dog")
    assert semantic([IMAGE])[0].semantic.shape == (45, 60)
    assert semantic.fingerprint != model.fingerprint


def test_runs_mask2former_for_a_panoptic_map(tmp_path: Path) -> None:
    folder = mask2former(tmp_path / "m2f")
    model = load_model(f"hf:{folder},task=panoptic,score=0")
    assert (model.classes, model.semantic_classes) == ((), ("cat", "dog"))
    (found,) = model([IMAGE])
    assert found.panoptic.shape == (45, 60)
    assert model.fingerprint != load_model(f"hf:{folder},task=panoptic").fingerprint  # whose score is 0.5


@pytest.mark.parametrize("build", [maskformer, oneformer])
def test_runs_other_universal_networks(tmp_path: Path, build: Callable[[Path], Path]) -> None:
    """All three tasks; the panoptic map is read again from the raw queries, without a decoder."""
    folder = build(tmp_path / "net")
    model = load_model(f"hf:{folder},task=panoptic,score=0")
    assert (model.classes, model.semantic_classes) == ((), ("cat", "dog"))
    (found,) = model([IMAGE])
    classes, masks = raw_queries(folder, "panoptic")
    sure, labels = classes.softmax(-1).max(-1)
    masks = torch.nn.functional.interpolate(masks[None].sigmoid(), size=(45, 60), mode="bilinear")[0]
    weighted = (sure[:, None, None] * masks).numpy()
    owner = weighted.argmax(0)  # of each pixel: the query that wants it most
    segments = 0
    for query, label in enumerate(labels.tolist()):
        mine, wanted = owner == query, weighted[query] >= 0.5
        if wanted.any() and mine.sum() > 0.8 * wanted.sum():
            (number,) = np.unique(found.panoptic[mine])
            assert number // SEGMENTS - 1 == label
            segments += 1
        else:
            assert not found.panoptic[mine].any()
    assert segments == len(np.unique(found.panoptic[found.panoptic > 0])) > 0
    (objects,) = load_model(f"hf:{folder},task=instance,score=0")([IMAGE])
    assert objects.masks is not None
    assert all(mask.size == (45, 60) for mask in objects.masks)
    (areas,) = load_model(f"hf:{folder},task=semantic")([IMAGE])
    assert areas.semantic.shape == (45, 60)


def raw_queries(folder: Path, task: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Class and mask logits of every query for the image, from transformers alone."""
    if (folder / "kinds.json").exists():
        net = T.OneFormerForUniversalSegmentation.from_pretrained(folder).eval()
        asked = {"task_inputs": [task]}
        processor = T.OneFormerProcessor.from_pretrained(folder)
    else:
        net, asked = T.MaskFormerForInstanceSegmentation.from_pretrained(folder).eval(), {}
        processor = T.MaskFormerImageProcessor.from_pretrained(folder)
    with torch.inference_mode():
        outputs = net(**processor(images=IMAGE, return_tensors="pt", **asked))
    return outputs.class_queries_logits[0], outputs.masks_queries_logits[0]


def test_oneformer_receives_its_task(tmp_path: Path) -> None:
    folder = oneformer(tmp_path / "net")
    first, second = (raw_queries(folder, task)[0] for task in ("panoptic", "semantic"))
    assert not torch.allclose(first, second)  # so a wrong sentence would be noticed
    maps = [load_model(f"hf:{folder},task={task},score=0") for task in ("panoptic", "semantic")]
    assert maps[0].fingerprint != maps[1].fingerprint


def test_confident_queries_become_segments() -> None:
    """A sure dog on the left, another above on the right, an unsure cat below it, and a query for nothing."""
    masks = torch.full((1, 4, 12, 16), -20.0)
    masks[0, 0, :, :8] = masks[0, 1, :6, 8:] = masks[0, 2, 6:, 8:] = 20.0
    sure, nothing = [0.0, 9.0, 0.0], [0.0, 0.0, 9.0]
    classes = torch.tensor([[sure, sure, [0.1, 0.0, 0.0], nothing]])
    outputs = SimpleNamespace(class_queries_logits=classes, masks_queries_logits=masks)
    processor = T.Mask2FormerImageProcessor(size=EDGES, ignore_index=255)
    found = _panoptic(processor, outputs, [(24, 32)], 0.5)[0].panoptic
    numbers = [np.unique(part).tolist() for part in (found[:, :15], found[:11, 17:], found[13:, 17:])]
    assert sorted(numbers[0] + numbers[1]) == [2 * SEGMENTS, 2 * SEGMENTS + 1]
    assert SEGMENTS not in numbers[2]  # transformers leaves its pixels to the others
    assert not _panoptic(processor, outputs, [(24, 32)], 0.9999)[0].panoptic.any()


def test_detr_with_masks_is_panoptic(tmp_path: Path) -> None:
    config = T.DetrForObjectDetection.from_pretrained(detr(tmp_path / "boxes")).config
    config.encoder_attention_heads = config.decoder_attention_heads = 8
    folder = save(tmp_path / "masks", T.DetrForSegmentation(config), T.DetrImageProcessor(size=EDGES))
    model = load_model(f"hf:{folder},score=0")
    assert model.semantic_classes == ("N/A", "person", "car")
    (found,) = model([IMAGE])
    assert found.panoptic.shape == (45, 60)


def test_runs_segformer(tmp_path: Path) -> None:
    model = load_model(f"hf:{segformer(tmp_path / 'segformer')}")
    assert model.semantic_classes == ("road", "sky", "car")
    (found,) = model([IMAGE])
    assert found.semantic.shape == (45, 60)
    assert found.semantic.max() <= 2


def test_the_fingerprint_follows_the_files(tmp_path: Path) -> None:
    folder = segformer(tmp_path / "segformer")
    first = load_model(f"hf:{folder}").fingerprint
    assert load_model(f"hf:{folder}").fingerprint == first
    torch.manual_seed(1)
    segformer(folder)
    assert load_model(f"hf:{folder}").fingerprint != first


def test_nothing_is_downloaded_unasked(monkeypatch, tmp_path: Path) -> None:
    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(ModelError, match="download=true"):
        load_model("hf:nobody/no-such-model")


def test_refuses_other_tasks_and_architectures(tmp_path: Path) -> None:
    folder = segformer(tmp_path / "s")
    for option, said in (
        ("task=depth", "task=depth"),
        ("score=50", "score=50: it must lie in 0 to 1"),
        ("device=nowhere", "device=nowhere: Expected one of cpu"),
    ):
        with pytest.raises(InvalidOption, match=said):
            load_model(f"hf:{folder},{option}")
    T.ResNetConfig(architectures=["ResNetForImageClassification"]).save_pretrained(tmp_path / "r")
    with pytest.raises(ModelError, match="ResNetForImageClassification"):
        load_model(f"hf:{tmp_path}/r")


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "it ran",))

    folder = segformer(tmp_path / "segformer")
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Evil()}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="cannot be opened"):
        load_model(f"hf:{folder}")
    assert not (tmp_path / "it ran").exists()


def test_asks_for_the_names_of_numbered_classes(tmp_path: Path) -> None:
    folder = segformer(tmp_path / "segformer")
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {k: f"LABEL_{k}" for k in range(3)}
    config["label2id"] = {f"LABEL_{k}": k for k in range(3)}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"names its 3 classes LABEL_0.*classes=FILE"):
        load_model(f"hf:{folder}")
    (tmp_path / "names.txt").write_text("road\nsky\ncar\n")
    model = load_model(f"hf:{folder},classes={tmp_path}/names.txt")
    assert model.semantic_classes == ("road", "sky", "car")
    (found,) = model([IMAGE])
    assert found.semantic is not None
    assert found.semantic.shape == IMAGE.shape[:2]
    assert load_model(f"hf:{folder},classes=dataset").semantic_classes == ()
    with pytest.raises(ModelError, match="has 3 classes, but classes=voc20 names 20"):
        load_model(f"hf:{folder},classes=voc20")


IMAGES = [
    np.random.default_rng(4).integers(0, 256, (*size, 3), np.uint8)
    for size in [(45, 60), (90, 120), (130, 70), (30, 30), (30, 30), (101, 101)]
]


def on_device(image: np.ndarray) -> torch.Tensor:
    """As a corrupted image lies there: planes in memory."""
    return torch.from_numpy(image.transpose(2, 0, 1).copy()).permute(1, 2, 0)


def assert_same(found, expected) -> None:
    for one, other in zip(found, expected, strict=True):
        for name in ("boxes", "scores", "labels", "semantic", "panoptic"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert [[*mask.counts] for mask in one.masks or ()] == [[*mask.counts] for mask in other.masks or ()]


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where each image was prepared."""
    places, own = [], DeviceProcessor._prepare

    def prepare(self, image):
        made = own(self, image)
        places.append("host" if isinstance(made, dict) else "device")
        return made

    monkeypatch.setattr(DeviceProcessor, "_prepare", prepare)
    return places


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (detr, "score=0"), (rt_detr, "score=0"), (yolos, "score=0"), (segformer, "task=semantic"),
        (mask2former, "score=0"), (mask2former, "task=panoptic,score=0"), (oneformer, "score=0"),
    ],
)  # fmt: skip
def test_tensors_on_a_device_give_the_bits_of_the_host(
    tmp_path: Path, prepared: list[str], build: Callable[[Path], Path], options: str
) -> None:
    """Images that shrink and grow, one by one and together where their inputs have one size."""
    folder = build(tmp_path / "net")
    for batch in (1, 4):
        model = load_model(f"hf:{folder},{options},batch={batch}")
        assert model.takes_tensors
        expected = model(IMAGES)
        prepared.clear()
        assert_same(model([*map(on_device, IMAGES)]), expected)
        assert prepared == ["device"] * len(IMAGES)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("build", [detr, rt_detr, segformer, mask2former])
def test_a_gpu_prepares_the_bits_of_the_host(
    tmp_path: Path, prepared: list[str], build: Callable[[Path], Path]
) -> None:
    """In the same batches; the networks themselves compute on the GPU either way."""
    model = load_model(f"hf:{build(tmp_path / 'net')},device=cuda")
    expected = model(IMAGES)
    prepared.clear()
    for _ in range(2):  # kernels are compared with their twins, then run alone
        assert_same(model([on_device(image).cuda() for image in IMAGES]), expected)
    assert prepared == ["device"] * 2 * len(IMAGES)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_network_on_the_host_takes_images_from_a_gpu(tmp_path: Path) -> None:
    """As with --device cuda, and the model's own device left at its default."""
    model = load_model(f"hf:{detr(tmp_path / 'net')},score=0")
    assert_same(model([on_device(image).cuda() for image in IMAGES]), model(IMAGES))


def test_inputs_of_one_size_are_run_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, run = [], T.SegformerForSemanticSegmentation.forward

    def forward(self, pixel_values):
        calls.append(len(pixel_values))
        return run(self, pixel_values)

    monkeypatch.setattr(T.SegformerForSemanticSegmentation, "forward", forward)
    folder = segformer(tmp_path / "net")
    for images in (IMAGES, [*map(on_device, IMAGES)]):
        assert len(load_model(f"hf:{folder},batch=4")(images)) == len(load_model(f"hf:{folder}")(images)) == 6
    assert calls == [4, 2, 1, 1, 1, 1, 1, 1] * 2


def processing(processor):
    return lambda image, **options: processor(
        images=image, return_tensors="pt", input_data_format="channels_last", **options
    )


@pytest.mark.parametrize("options", [{"resample": 3}, {"do_center_crop": True, "crop_size": 48}])
def test_what_a_device_cannot_do_is_prepared_on_the_host(
    prepared: list[str], options: dict[str, object]
) -> None:
    prepare = DeviceProcessor(processing(T.ViTImageProcessor(size=64, **options)), "cpu")
    ((_, expected),) = prepare.batches(IMAGES, 9)
    ((_, made),) = prepare.batches([*map(on_device, IMAGES)], 9)
    assert torch.equal(made["pixel_values"], expected["pixel_values"])
    assert prepared == ["host"] * 2 * len(IMAGES)


def test_padding_and_its_mask_are_those_of_the_host(prepared: list[str]) -> None:
    images = IMAGES[:2] + IMAGES[3:]
    processor = T.DetrImageProcessor(size=EDGES, pad_size={"height": 96, "width": 128})
    prepare = DeviceProcessor(processing(processor), "cpu")
    ((group, expected),) = prepare.batches(images, 9)
    ((_, made),) = prepare.batches([*map(on_device, images)], 9)
    assert (group, prepared) == ([0, 1, 2, 3, 4], ["host"] * 5 + ["device"] * 5)
    assert made.keys() == expected.keys() == {"pixel_values", "pixel_mask"}
    assert all(torch.equal(made[name], expected[name]) for name in made)
    assert not made["pixel_mask"].all()


def test_a_mask_of_ones_is_not_kept_whole_for_every_size() -> None:
    prepare = DeviceProcessor(processing(T.DetrImageProcessor(size=EDGES)), "cpu")
    assert sum(len(group) for group, _ in prepare.batches([*map(on_device, IMAGES)], 9)) == len(IMAGES)
    masks = [plan.keywords["further"]["pixel_mask"] for plan in prepare._plans.values()]
    assert all(mask.all() and mask.untyped_storage().nbytes() == mask.itemsize for mask in masks)
