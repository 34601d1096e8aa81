"""Export: the ONNX file says what the network says, through the decoder that its card names."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs PyTorch")

from stormproof.models import load_model  # noqa: E402
from training import networks  # noqa: E402
from training.augment import normalised  # noqa: E402
from training.config import load  # noqa: E402
from training.decoding import found  # noqa: E402
from training.export import export, load_weights  # noqa: E402


@pytest.mark.parametrize("name", ["street-grid", "street-centre", "street-masks", "street-plain"])
def test_the_exported_network_answers_as_the_trained_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "WIDTHS", (8, 8, 16, 16, 16))
    monkeypatch.setattr(networks, "DEPTHS", (1, 1, 1, 1))
    training = load(name)
    network = networks.build(training.network, training.options, 1)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):  # norms that are not all alike
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
    weights = {k: t.half() if t.is_floating_point() else t for k, t in network.state_dict().items()}
    log = {"training": asdict(training)}
    torch.save({"weights": weights, "log": json.dumps(log)}, tmp_path / f"{name}.pt")
    path = export(tmp_path / f"{name}.pt", tmp_path / "out")
    image = np.random.default_rng(0).integers(0, 256, (320, 512, 3), np.uint8)
    model = load_model(f"onnx:{path},score=0")
    assert callable(model)
    (said,) = model([image])
    with torch.no_grad():
        outputs = load_weights(tmp_path / f"{name}.pt")[0](normalised(torch.from_numpy(image)[None]))
    if training.network == "semantic":
        logits = torch.nn.functional.interpolate(outputs["logits"], (320, 512), mode="bilinear")
        assert (said.semantic == logits.argmax(1)[0].numpy()).mean() > 0.98
        return
    (expected,) = found(training.network, outputs, (320, 512))
    assert np.abs(said.scores[:5] - expected.scores[:5].numpy()).max() < 0.005
    limits = np.array([512, 320, 512, 320])
    best = np.clip(expected.boxes[0].numpy(), 0, limits)
    assert np.abs(said.boxes[:5] - best).max(axis=1).min() < 1.0
