"""The drawn scenes seen from above and their network: from a file to a scored run of oriented boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from helpers.typed import say
from stormproof import open_dataset
from stormproof.models import load_model
from stormproof.results.run import Run

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")
aerial = pytest.importorskip("training.aerial")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three scenes, and an untrained network whose scores are near 0.5."""
    root = tmp_path_factory.mktemp("aerial")
    aerial.write_scenes(root / "scenes", 3)
    torch.manual_seed(0)
    net = aerial.Aerial()
    torch.nn.init.constant_(net.heat[-1].bias, 0.0)
    torch.save(net.state_dict(), root / "weights.pth")
    aerial.export(root / "weights.pth", root / "aerial.onnx")
    return root


def test_scenes_are_read_as_they_were_drawn(made: Path) -> None:
    dataset = open_dataset(f"dota:{made}/scenes")
    assert {*aerial.CLASSES} <= {*dataset.classes}
    image, boxes, labels = aerial.draw_scene(1)
    np.testing.assert_array_equal(dataset[1].image, image)
    objects = dataset[1].truth.instances
    names = [dataset.classes[label] for label in objects.labels]
    assert names == [aerial.CLASSES[label] for label in labels]
    sides = np.linalg.norm(np.diff(objects.data["corners"], axis=1), axis=2)
    np.testing.assert_allclose(sides[:, :2], boxes[:, 2:4], atol=0.02)


def test_boxes_of_the_file_are_those_of_the_network(made: Path) -> None:
    image, _, _ = aerial.draw_scene(0)
    (found,) = load_model(f"onnx:{made}/aerial.onnx")([image])
    with torch.inference_mode():
        pixels = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
        table = aerial.load(made / "weights.pth")(pixels)[0].numpy()
    best = int(np.argmax(table[4:7].max(axis=0)))
    assert found.scores.max() == pytest.approx(table[4:7].max(), rel=1e-4)
    corners = np.array(aerial.SQUARE) * table[2:4, best] / 2 @ aerial.turn(table[7, best]) + table[:2, best]
    np.testing.assert_allclose(found.data["corners"][found.scores.argmax()], corners, atol=0.05)


def test_from_the_file_to_the_report(made: Path, tmp_path: Path) -> None:
    given = ("--model", f"onnx:{made}/aerial.onnx", "--data", f"dota:{made}/scenes", "-c", "fog@3")
    say("run", *given, "--engine", "local", "--out", tmp_path / "run")
    assert Run(tmp_path / "run").score().headline == "oriented AP"
    assert "oriented AP" in say("score", tmp_path / "run", "--interval")
    say("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert "oriented AP" in (tmp_path / "page.html").read_text(encoding="utf-8")
