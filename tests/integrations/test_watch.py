"""A watch on a training: its numbers are those of a run, and it fits the loops it names."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import stormproof as sp
from stormproof.core.errors import InvalidOption, UnknownName

SUITE = ("fog@1", "fog@3", "gaussian_noise@3")


def boxes_of(images, shift: float = 0.0) -> list[dict]:
    """Predicts the same two boxes anywhere."""
    boxes = np.array([[4.0, 4, 40, 30], [60, 30, 110, 62]]) + shift
    return [{"boxes": boxes, "scores": np.array([0.9, 0.4]), "labels": np.array([0, 2])} for _ in images]


@pytest.fixture(scope="module")
def data() -> sp.Run:
    return sp.open_dataset("world:val,size=128x80", limit=6)


def test_a_reading_of_the_whole_grid_equals_the_score_of_a_run(data, tmp_path: Path, capsys) -> None:
    model = sp.open_model("builtin:street-grid")
    watch = sp.watch(data, SUITE, precision=0, out=tmp_path / "watch")
    found = watch(10, model)
    made = sp.run(model, data, conditions=SUITE, out=tmp_path / "run", progress=False, engine="local")
    cells = made.score().per_condition["AP"]
    assert found.clean == cells["clean"] > 0
    assert found.mpc == pytest.approx(np.mean([cells[text] for text in SUITE]))
    assert found.mean == "mean over 3 conditions"
    assert found.margin == 0
    means = {"fog": np.mean([cells["fog@1"], cells["fog@3"]]), "gaussian_noise": cells["gaussian_noise@3"]}
    assert found.worst == min(means, key=means.get)
    assert found.worst_score == pytest.approx(min(means.values()))
    assert sp.Run(tmp_path / "watch" / "step-000010").score().per_condition["AP"] == cells
    assert str(found) in capsys.readouterr().out
    assert watch.table().rows[0][1] == pytest.approx(100 * found.clean)


def test_a_precision_saves_most_of_the_grid_and_gives_an_interval(data) -> None:
    samples = [replace(data[k % 6], id=f"street-{k}") for k in range(60)]
    seen: list[int] = []

    def predict(images) -> list[dict]:
        seen.append(len(images))
        return boxes_of(images)

    numbers: dict[str, float] = {}
    watch = sp.watch(samples, "noise", precision=30, log=lambda found, step: numbers.update(found))
    found = watch(0, predict)
    assert sum(seen) < 0.5 * 16 * 60
    assert found.measure == "AP"
    assert 0 <= found.margin <= 0.3
    assert numbers["stormproof/mPC AP"] == pytest.approx(100 * found.mpc)
    assert numbers["stormproof/mPC ±"] == pytest.approx(100 * found.margin)
    assert 0 < watch.share <= 1


def test_watch_is_free_between_its_turns(data) -> None:
    watch = sp.watch(data, SUITE, every=3, precision=0, log=lambda numbers, step: None)
    assert [step for step in range(1, 8) if watch(step, boxes_of)] == [3, 6]
    with pytest.raises(InvalidOption, match="every=0"):
        sp.watch(data, every=0)
    with pytest.raises(InvalidOption, match="precision=-1"):
        sp.watch(data, precision=-1)


def test_refuses_a_misspelt_condition_before_the_training(data) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'weather'"):
        sp.watch(data, "weatherr", every=5)


def test_the_table_calls_a_mean_by_its_name(data) -> None:
    watch = sp.watch(data, "fog@3,snow@3", precision=0, log=lambda numbers, step: None)
    watch(0, boxes_of)
    assert watch.table().columns[2] == "mean over 2 conditions"


def test_ultralytics_callback_scores_the_weights_just_saved(data, tmp_path: Path, monkeypatch) -> None:
    """By the protocol of its trainer: the package is AGPL and not among the tests' requirements."""
    opened = []

    class YOLO:
        def __init__(self, path: str) -> None:
            self.names = dict(enumerate(data.classes))
            opened.append(path)

        def predict(self, image, **limits):
            found = boxes_of([image])[0]
            boxes = SimpleNamespace(xyxy=found["boxes"], conf=found["scores"], cls=found["labels"])
            return [SimpleNamespace(boxes=boxes, masks=None)]

    package = ModuleType("ultralytics")
    package.YOLO = YOLO
    monkeypatch.setitem(sys.modules, "ultralytics", package)
    weights = tmp_path / "last,1.pt"
    weights.write_bytes(b"weights")
    watch = sp.watch(data, SUITE, every=2, precision=0, log=lambda numbers, step: None)
    for epoch in range(4):
        watch.ultralytics(SimpleNamespace(epoch=epoch, last=weights, device="cpu"))
    assert [found.step for found in watch.readings] == [2, 4]
    assert set(opened) == {str(weights)}


class Boxes:
    """A torch module that learns nothing, but whose boxes drift with every step."""

    @staticmethod
    def make(torch):
        class Module(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.shift = torch.nn.Parameter(torch.zeros(1))

            def forward(self, images):
                assert not self.training
                assert not torch.is_grad_enabled()
                return boxes_of(images, float(self.shift))

        return Module()


def test_the_lightning_callback_logs_scores(data, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    lightning = pytest.importorskip("lightning.pytorch")
    logged = []

    class Logger(lightning.loggers.CSVLogger):
        def log_metrics(self, metrics, step=None) -> None:
            logged.append((step, dict(metrics)))

    class Trained(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Boxes.make(torch)

        def training_step(self, batch, _):
            assert self.inner.training
            return (self.inner.shift - batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    watch = sp.watch(data, SUITE, every=2, precision=0, log=lambda numbers, step: None)
    trainer = lightning.Trainer(
        max_epochs=4, accelerator="cpu", logger=Logger(tmp_path), enable_progress_bar=False,
        enable_checkpointing=False, callbacks=[watch.lightning(lambda module, images: module.inner(images))],
        enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 1)), batch_size=2)
    trainer.fit(Trained(), batches)
    assert [found.step for found in watch.readings] == [2, 4]
    ours = [(step, metrics) for step, metrics in logged if "stormproof/mean AP" in metrics]
    assert [step for step, _ in ours] == [4, 8]
    assert ours[0][1] == watch.readings[0].numbers


def test_the_mmengine_hook_logs_scores(data, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    runner_of = pytest.importorskip("mmengine.runner").Runner
    base = pytest.importorskip("mmengine.model").BaseModel

    class Trained(base):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Boxes.make(torch)

        def forward(self, inputs, mode="tensor"):
            return {"loss": (self.inner.shift - torch.stack(inputs)).square().mean()}

    watch = sp.watch(data, SUITE, every=2, precision=0, log=lambda numbers, step: None)
    runner = runner_of(
        model=Trained(), work_dir=str(tmp_path), experiment_name="watch",
        train_dataloader={"batch_size": 2, "dataset": [{"inputs": torch.ones(1)}] * 4,
                          "sampler": {"type": "DefaultSampler", "shuffle": False}},
        train_cfg={"by_epoch": True, "max_epochs": 4},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}},
        visualizer={"type": "Visualizer", "vis_backends": [{"type": "LocalVisBackend"}]},
        default_hooks={"checkpoint": None},
    )  # fmt: skip
    runner.register_hook(watch.mmengine(lambda model, images: model.inner(images)))
    runner.train()
    assert [found.step for found in watch.readings] == [2, 4]
    scalars = next(tmp_path.rglob("scalars.json")).read_text()
    assert "stormproof/mean AP" in scalars
