"""torch modules: TorchScript, state dicts, modules from code; and pickles, which are never opened."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.models import load_model
from stormproof.models.candidates import to_prediction
from stormproof.models.card import complete_card
from stormproof.models.decoders import DECODERS
from stormproof.models.geometry import plan_fit
from stormproof.models.torch import flatten

torch = pytest.importorskip("torch", reason="needs torch")

IMAGE = np.zeros((20, 30, 3), np.uint8)
IMAGE[..., 1] = 250
CODE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(3))
    def forward(self, x):
        return x * self.gain[None, :, None, None]

class Detector(torch.nn.Module):
    classes = ("cat",)
    def forward(self, images):
        box, mask = torch.tensor([[1.0, 2.0, 11.0, 12.0]]), torch.ones(1, 1, *images[0].shape[1:])
        said = {"boxes": box, "labels": torch.tensor([1]), "scores": torch.tensor([0.5]), "masks": mask}
        return [said for _ in images]
"""


class Evil:
    """What a hostile pickle does: it runs code when it is opened."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self):
        return (Path.touch, (self.proof,))


@pytest.fixture
def code(tmp_path: Path, monkeypatch) -> str:
    (tmp_path / "torch_nets_for_test.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "torch_nets_for_test"
    sys.modules.pop("torch_nets_for_test", None)


@pytest.fixture
def card(tmp_path: Path) -> Path:
    (tmp_path / "card.yaml").write_text(
        "decoder: logits\nclasses: [red, green, blue]\ninput: {size: 16, mean: 0, std: 255}\n"
    )
    return tmp_path / "card.yaml"


def labels(model) -> set[int]:
    found = model([IMAGE])[0].semantic
    assert found.shape == (20, 30)
    return {*found.ravel().tolist()}


def test_a_missing_device_is_named(tmp_path: Path) -> None:
    torch.jit.script(torch.nn.Conv2d(3, 2, 1)).save(str(tmp_path / "net.pt"))
    with pytest.raises(InvalidOption, match="device=nowhere: Expected one of cpu"):
        load_model(f"torch:{tmp_path}/net.pt,device=nowhere")


def test_runs_torchscript(tmp_path: Path, card: Path, code: str) -> None:
    import torch_nets_for_test as nets

    path = tmp_path / "net.pt"
    torch.jit.save(torch.jit.trace(nets.Net(), torch.zeros(1, 3, 16, 16)), str(path))
    model = load_model(f"torch:{path},card={card}")
    assert model.semantic_classes == ("red", "green", "blue")
    assert model.name == "net"
    assert labels(model) == {1}


def test_opens_a_state_dict_with_its_module(tmp_path: Path, card: Path, code: str) -> None:
    path = tmp_path / "weights.pth"
    torch.save({"state_dict": {"gain": torch.tensor([1.0, -1.0, 1.0])}}, path)
    model = load_model(f"torch:{path},module={code}:Net,card={card}")
    assert labels(model) != {1}
    first = model.fingerprint
    torch.save({"gain": torch.ones(3)}, path)
    again = load_model(f"torch:{path},module={code}:Net,card={card}")
    assert labels(again) == {1}
    assert again.fingerprint != first
    torch.save({"gian": torch.ones(3)}, path)
    with pytest.raises(ModelError, match="does not fit the module"):
        load_model(f"torch:{path},module={code}:Net,card={card}")


def test_opens_a_module_from_code(card: Path, code: str) -> None:
    assert labels(load_model(f"torch:{code}:Net,card={card}")) == {1}
    with pytest.raises(InvalidOption, match=f"open it as torch:{code}:Net"):
        load_model(f"{code}:Net")
    with pytest.raises(ModelError, match="decoder:"):
        load_model(f"torch:{code}:Net")


def test_opens_a_detector_with_torchvisions_interface(code: str) -> None:
    (found,) = load_model(f"torch:{code}:Detector,decoder=torchvision,classes=dataset")([IMAGE])
    assert found.boxes.tolist() == [[1, 2, 11, 12]]
    assert found.masks is not None
    assert found.masks[0].area == 600


@pytest.mark.parametrize("how", ["torch.save", "pickle"])
@pytest.mark.parametrize("module", ["", ",module={code}:Net"])
def test_pickles_are_never_opened(tmp_path: Path, card: Path, code: str, how: str, module: str) -> None:
    path, proof = tmp_path / "evil.pt", tmp_path / "it ran"
    if how == "pickle":
        path.write_bytes(pickle.dumps(Evil(proof)))
    else:
        torch.save(Evil(proof), path)
    with pytest.raises(ModelError, match=r"refused|more than weights"):
        load_model(f"torch:{path}{module.format(code=code)},card={card}")
    assert not proof.exists()


def test_flattens_outputs_of_every_structure() -> None:
    one, two = torch.zeros(1, 2), torch.ones(1, 3)
    assert [a.shape for a in flatten((one, [two]), None)] == [(1, 2), (1, 3)]
    assert [a.shape for a in flatten({"b": two, "a": one}, ["a", "b"])] == [(1, 2), (1, 3)]
    with pytest.raises(ModelError, match="not among the network's"):
        flatten({"b": two}, ["a"])
    scripted = ({}, [{"boxes": torch.zeros(0, 4), "labels": torch.zeros(0), "scores": torch.zeros(0)}])
    assert [[a.shape for a in part] for part in flatten(scripted, None)] == [[(0, 4)], [(0,)], [(0,)]]


@pytest.mark.parametrize(("decoder", "shape"), [("yolov5", (3, 500, 9)), ("yolov8", (3, 8, 500))])
def test_rows_that_cannot_pass_stay_on_the_device(decoder: str, shape: tuple[int, ...]) -> None:
    from stormproof.models.on_device.boxes import keep_candidates

    card = complete_card({}, {"decoder": decoder, "input": {"size": (64, 64)}, "score": 0.9}, "table")
    table = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    (table if decoder == "yolov5" else table.transpose(1, 2))[..., 2:4] *= 60
    (kept,) = keep_candidates([table], card)
    axis = 1 if decoder == "yolov5" else 2
    assert 0 < kept.shape[axis] < 300
    fit = plan_fit((64, 64), (64, 64), "stretch")
    for whole, few in zip(table.numpy(), kept.numpy(), strict=True):
        one, two = (
            to_prediction(DECODERS[decoder].function([rows], (64, 64)), fit, card.limits)
            for rows in (whole, few)
        )
        assert len(one) > 0
        assert all((getattr(one, key) == getattr(two, key)).all() for key in ("boxes", "scores", "labels"))
    for wrong in (float("nan"), -0.5, 7.0):  # the decoder says what is wrong
        refused = table.clone()
        refused[1, -1, -1] = wrong
        assert keep_candidates([refused], card)[0] is refused
    assert keep_candidates([table * 0], card)[0].shape[axis] == 1


def _crowd(seed: int, classes: int, rows: int, *, ties: bool = False) -> Any:
    """A table n×rows×(4+classes) of boxes that overlap in many ways; scores may be equal."""
    draw = np.random.default_rng(seed)
    middle, sides = draw.uniform(-5, 69, (3, rows, 2)), draw.uniform(-2, 40, (3, rows, 2))
    scores = draw.random((3, rows, classes)) ** 4
    table = np.concatenate([middle, sides, scores.round(2) if ties else scores], 2).astype(np.float32)
    table[:, ::9, 3] = 0  # without area
    table[:, 1::7] = table[:, ::7][:, : len(table[0, 1::7])]  # the same box twice
    return torch.from_numpy(table)


@pytest.mark.parametrize("decoder", ["yolov5", "yolov8"])
@pytest.mark.parametrize(
    ("seed", "rows", "score", "iou", "ties"),
    [
        (0, 300, 0.05, 0.5, False),
        (1, 900, 0.001, 0.7, True),
        (2, 40, 0.99, 0.6, False),
        (3, 700, 0.2, 0.9, True),
    ],
)
def test_tables_decoded_on_the_device_give_the_bits_of_the_host(
    decoder: str, seed: int, rows: int, score: float, iou: float, ties: bool
) -> None:
    from stormproof.models.on_device.boxes import decode_tables, keep_candidates

    given = {"decoder": decoder, "input": {"size": (64, 64)}, "score": score, "iou": iou, "keep": 30}
    card = complete_card({}, {**given, "label_offset": -1}, "table")
    table = _crowd(seed, 5 if decoder == "yolov5" else 4, rows, ties=ties)
    if decoder == "yolov8":
        table = table.transpose(1, 2)
    fits = [plan_fit(size, (64, 64), "letterbox") for size in ((50, 40), (64, 64), (33, 90))]
    found = decode_tables(keep_candidates([table], card), fits, card, (2,))
    assert found is not None
    _require_bits_of_host(found, [[rows] for rows in table.numpy()], fits, card, (2,))
    assert seed == 2 or sum(found.counts) > 30


def test_ties_at_the_candidate_limit_keep_the_first() -> None:
    from stormproof.models.on_device.boxes import decode_tables, keep_candidates

    given = {"decoder": "yolov8", "input": {"size": (64, 64)}, "score": 0.1, "keep": 2900, "iou": 0.99}
    card = complete_card({}, given, "table")
    table = _crowd(5, 3, 2000, ties=True)[..., :6].transpose(1, 2)
    fits = [plan_fit((64, 64), (64, 64), "stretch")] * 3
    found = decode_tables(keep_candidates([table], card), fits, card, ())
    assert found is not None
    _require_bits_of_host(found, [[rows] for rows in table.numpy()], fits, card, ())


def _require_bits_of_host(found: Any, outputs: Any, fits: Any, card: Any, background: Any) -> None:
    for one, fit, own in zip(found, fits, outputs, strict=True):
        known = DECODERS[card.decoder].function(own, fit.canvas)
        host = to_prediction(known, fit, card.limits, offset=card.label_offset, background=background)
        for key in ("boxes", "scores", "labels", "sides"):
            assert getattr(one, key).dtype == getattr(host, key).dtype
            assert getattr(one, key).tobytes() == getattr(host, key).tobytes(), key


@pytest.mark.parametrize(
    ("queries", "score", "ties"), [(40, 0.01, False), (300, 0.3, True), (300, 0.9, False)]
)
def test_decoding_a_batch_of_queries_equals_the_host_bit_for_bit(
    queries: int, score: float, ties: bool
) -> None:
    from stormproof.models.on_device.lists import decode_lists

    given = {"decoder": "rtdetr", "input": {"size": (64, 96), "resize": "stretch"}, "score": score}
    card = complete_card({}, {**given, "keep": 30, "label_offset": -1}, "queries")
    draw = np.random.default_rng(queries)
    logits = draw.normal(-1, 2, (3, queries, 7)).astype(np.float32)
    logits = logits.round(2) if ties else logits
    boxes = draw.uniform(-0.1, 1.1, (3, queries, 4)).astype(np.float32)
    boxes[:, ::5, 2] = 0  # without area
    fits = [plan_fit(size, (64, 96), "stretch") for size in ((50, 40), (64, 96), (33, 90))]
    tensors = [torch.from_numpy(logits), torch.from_numpy(boxes)]
    found = decode_lists(tensors, fits, card, (2,))
    assert found is not None
    assert len(found.scores) > 9
    _require_bits_of_host(found, [*zip(logits, boxes, strict=True)], fits, card, (2,))
    tensors[1][1, 3, 2] = torch.nan
    assert decode_lists(tensors, fits, card, ()) is None  # the host says what is wrong
    equal = [torch.zeros_like(tensors[0]), torch.from_numpy(boxes).nan_to_num(0.5)]
    assert (decode_lists(equal, fits, card, ()) is None) == (score < 0.5)  # any of them may be the best


def test_decoding_a_batch_of_detection_lists_equals_the_host_bit_for_bit() -> None:
    from stormproof.models.on_device.lists import decode_lists

    card = complete_card({}, {"decoder": "torchvision", "label_offset": -1, "keep": 9, "score": 0.2}, "lists")
    draw = np.random.default_rng(1)
    each = [
        (draw.uniform(-3, 70, (n, 4)).astype(np.float32), draw.integers(0, 5, n), draw.random(n).astype("f4"))
        for n in (12, 0, 40)
    ]
    fits = [plan_fit((64, 80), (64, 80), "none")] * 3
    columns = [[torch.from_numpy(own) for own in column] for column in zip(*each, strict=True)]
    found = decode_lists(columns, fits, card, (1,))
    assert found is not None
    assert found.counts[1] == 0 < len(found.scores)
    _require_bits_of_host(found, each, fits, card, (1,))
