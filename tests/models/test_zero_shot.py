"""Zero-shot detectors: tiny networks with random weights are told the dataset's classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stormproof as sp
from stormproof.core.errors import ModelError
from stormproof.models import load_model
from stormproof.models.huggingface import _spans

torch = pytest.importorskip("torch", reason="needs the extra 'hf'")
T = pytest.importorskip("transformers", reason="needs the extra 'hf'")

IMAGE = np.random.default_rng(0).integers(0, 255, (45, 60, 3), dtype=np.uint8)
CLASSES = ("person", "traffic_light", "car")


def tokens(folder: Path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "person", "car", "traffic", "light"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return T.BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), model_max_length=64)


def grounding_dino(folder: Path) -> Path:
    tokenizer = tokens(folder)
    backbone = T.SwinConfig(
        image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4,
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    text = T.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=64,
    )  # fmt: skip
    config = T.GroundingDinoConfig(
        backbone_config=backbone, text_config=text, use_pretrained_backbone=False, use_timm_backbone=False,
        backbone=None, num_queries=9, d_model=32, encoder_layers=1, decoder_layers=2, encoder_ffn_dim=16,
        decoder_ffn_dim=16, encoder_attention_heads=4, decoder_attention_heads=4, max_text_len=64,
    )  # fmt: skip
    images = T.GroundingDinoImageProcessor(size={"shortest_edge": 64, "longest_edge": 96})
    return saved(
        folder, T.GroundingDinoForObjectDetection(config), T.GroundingDinoProcessor(images, tokenizer)
    )


def owl(folder: Path) -> Path:
    letters = [chr(code) for code in range(97, 123)]
    words = [*letters, *(f"{one}</w>" for one in letters), "<|startoftext|>", "<|endoftext|>"]
    tokenizer = T.CLIPTokenizerFast(
        vocab={word: k for k, word in enumerate(words)},
        merges=[],
        unk_token="<|endoftext|>",
        model_max_length=32,
    )
    config = T.OwlViTConfig(
        text_config={
            "vocab_size": len(words), "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
            "num_attention_heads": 2, "max_position_embeddings": 32, "bos_token_id": 52, "eos_token_id": 53,
            "pad_token_id": 53,
        },
        vision_config={
            "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
            "image_size": 64, "patch_size": 16,
        },
        projection_dim=16,
    )  # fmt: skip
    square = {"height": 64, "width": 64}
    images = T.OwlViTImageProcessor(size=square, crop_size=square)
    return saved(folder, T.OwlViTForObjectDetection(config), T.OwlViTProcessor(images, tokenizer))


def saved(folder: Path, net, processor) -> Path:
    net.save_pretrained(folder / "net")
    processor.save_pretrained(folder / "net")
    return folder / "net"


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def data() -> sp.Run:
    truth = sp.Truth(sp.Instances([[2, 2, 20, 20]], [1]))
    return sp.open_dataset([sp.Sample("a", IMAGE, truth)], classes=CLASSES)


@pytest.mark.parametrize("make", [owl, grounding_dino])
def test_zero_shot_models_get_the_classes_of_the_dataset(make, data, tmp_path: Path) -> None:
    model = load_model(f"hf:{make(tmp_path)},score=0")
    assert model.classes == ()
    with pytest.raises(ModelError, match="add ,classes=FILE"):
        model([IMAGE])
    bound = model.bind(data)
    assert bound.classes == CLASSES
    (found,) = bound([IMAGE])
    assert len(found) > 0
    assert set(found.labels) <= {0, 1, 2}
    assert (found.boxes.max(axis=0) <= [60, 45, 60, 45]).all()
    assert model.fingerprint == load_model(f"hf:{tmp_path / 'net'},score=0").fingerprint
    assert bound.fingerprint != model.fingerprint


def test_a_run_passes_the_classes_of_the_dataset(data, tmp_path: Path) -> None:
    spec = f"hf:{owl(tmp_path)},score=0"
    run = sp.run(spec, data, conditions="fog@3", out=tmp_path / "run", engine="local", progress=False)
    assert run.record.model.classes == CLASSES
    assert run.score().per_condition["AP"]["clean"] >= 0


def test_prints_given_classes_at_once(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("car\nperson\n")
    model = load_model(f"hf:{owl(tmp_path)},score=0,classes={names},prompt={{}}")
    assert model.classes == ("car", "person")
    assert set(model([IMAGE])[0].labels) <= {0, 1}


def test_grounding_dinos_scores_come_from_the_tokens_of_a_class(data, tmp_path: Path) -> None:
    """Against the network's own probabilities of tokens."""
    folder = grounding_dino(tmp_path)
    (found,) = load_model(f"hf:{folder},score=0").bind(data)([IMAGE])
    net = T.AutoModelForZeroShotObjectDetection.from_pretrained(folder).eval()
    processor = T.AutoProcessor.from_pretrained(folder)
    inputs = processor(text="person. traffic light. car.", images=IMAGE, return_tensors="pt")
    with torch.inference_mode():
        chances = net(**inputs).logits[0].sigmoid().numpy()
    # [CLS] person . traffic light . car . [SEP]
    expected = np.stack([chances[:, 1], chances[:, 3:5].mean(axis=1), chances[:, 6]], axis=1)
    assert np.sort(found.scores) == pytest.approx(np.sort(expected.ravel()), abs=1e-6)
    best = np.unravel_index(expected.argmax(), expected.shape)
    assert found.labels[0] == best[1]


def test_too_many_words_are_refused(tmp_path: Path) -> None:
    phrases = ["person"] * 40
    with pytest.raises(ModelError, match="40 classes are 82 tokens, more than the model's 64"):
        _spans(tokens(tmp_path), ". ".join(phrases) + ".", phrases)


def test_a_dataset_without_classes_is_refused(tmp_path: Path) -> None:
    nameless = sp.open_dataset([sp.Sample("a", IMAGE)])
    with pytest.raises(ModelError, match="needs the names of its classes"):
        load_model(f"hf:{owl(tmp_path)}").bind(nameless)
