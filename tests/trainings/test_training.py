"""Trainings: data in files, truth that moves with the image, assignment, scores, and a loop that learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs PyTorch")

from helpers.toyscenes import toy_pool  # noqa: E402
from training import loop, networks, pool  # noqa: E402
from training.assignment import assign  # noqa: E402
from training.augment import CHANCES, as_batch, varied  # noqa: E402
from training.boxes import cells, from_edges, from_rows, giou, iou  # noqa: E402
from training.config import CONFIGS, Augment, Source, load  # noqa: E402
from training.decoding import OVERLAP, remaining  # noqa: E402
from training.evaluation import Matched, average_precision, mean_iou  # noqa: E402
from training.scenes import Arrays, Scenes  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toys")
    toy_pool(folder / "train", 48)
    toy_pool(folder / "val", 8, "val")
    return folder


def scenes(toys: Path, *sources: Source) -> Scenes:
    chosen, truths = sources or (Source(),), ("semantic", "instance")
    held = Arrays(toys / "train", CPU, (*truths, *(source.array for source in chosen)))
    held.grow()
    return Scenes(held, chosen, truths)


def test_every_configuration_is_read() -> None:
    for path in CONFIGS.glob("*.toml"):
        training = load(path.stem)
        assert training.name == path.stem
        assert training.network in networks.NETWORKS


def test_an_unknown_setting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text('network = "grid"\nlearning = 3\n')
    with pytest.raises(ValueError, match="unknown setting 'learning'"):
        load(str(path))


def test_a_pool_is_ready_up_to_the_first_gap(tmp_path: Path) -> None:
    made = pool.Pool("train", 10, 32, 32, 0, 1, 3)
    pool.create(tmp_path, made)
    pool.array(tmp_path, made, "done", "r+")[:] = [2, 1, 2]  # scenes 0 3, 1, 2 5: scene 4 is missing
    assert pool.ready(tmp_path, made) == 4
    pool.array(tmp_path, made, "done", "r+")[:] = [4, 3, 3]
    assert pool.ready(tmp_path, made) == 10


def test_copies_wait_for_scenes_still_being_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pool.Pool("train", 4, 32, 32, 0, 1, 1)
    pool.create(tmp_path, made)
    done = pool.array(tmp_path, made, "done", "r+")
    monkeypatch.setattr(pool.time, "sleep", lambda _: done.__iadd__(1))  # a scene is rendered meanwhile
    pool.wait_for(tmp_path, made, 3)
    assert pool.ready(tmp_path, made) == 3


def chances(count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(CHANCES, count, generator=torch.Generator().manual_seed(seed))


def test_truth_moves_with_the_image(toys: Path) -> None:
    """After flips and zooms the box of an object is still the extent of its instance."""
    held = scenes(toys)
    drawn = held.mixed(torch.randint(held.count, (24,), generator=torch.Generator().manual_seed(1)))
    batch = varied(drawn, Augment(flip=0.5, zoomed=0.7), chances(24, seed=2))
    assert batch.instance is not None
    checked = 0
    for i in range(24):
        for k in range(batch.boxes.shape[1]):
            ys, xs = torch.nonzero(batch.instance[i] == k + 1, as_tuple=True)
            later = (batch.valid[i, k + 1 :] != 0).any()  # those may hide it
            if batch.valid[i, k] == 1 and not later:
                extent = torch.stack([xs.min(), ys.min(), xs.max() + 1, ys.max() + 1])
                assert (extent - batch.boxes[i, k]).abs().max() <= 1.5
                checked += 1
    assert checked > 10


def test_an_object_mostly_outside_the_frame_does_not_count(toys: Path) -> None:
    drawn = scenes(toys).take(torch.arange(8))
    far = varied(drawn, Augment(flip=0, zoomed=1, zoom=(6.0, 6.0)), chances(8))
    assert (far.valid != as_batch(drawn).valid).any()
    assert set(far.valid.unique().tolist()) <= {-1, 0, 1}


def test_images_of_another_array_are_drawn_at_their_share(toys: Path) -> None:
    made = pool.read(toys / "train")
    pool.array(toys / "train", made, "dark", "w+")[:] = 7
    held = scenes(toys, Source(share=1), Source("dark", 3))
    drawn = held.mixed(torch.arange(8))
    assert [bool((image == 7).all()) for image in drawn["images"]] == [False] * 2 + [True] * 6


def test_boxes_by_hand() -> None:
    places, steps = cells((32, 64), CPU, (8, 32))
    assert len(places) == 4 * 8 + 2
    row = torch.tensor([[[0.5, 0.5, 0.0, np.log(2)]]])
    assert from_rows(row, places[9:10], steps[9:10]).tolist() == [[[8.0, 4.0, 16.0, 20.0]]]
    edges = torch.zeros(1, 4)
    assert from_edges(edges, torch.tensor([[2.0, 3.0]]), 4).tolist() == [[6.0, 10.0, 14.0, 18.0]]
    a, b = torch.tensor([0.0, 0.0, 2.0, 2.0]), torch.tensor([4.0, 0.0, 6.0, 2.0])
    assert float(iou(a, b)) == 0
    assert float(giou(a, b)) == pytest.approx(-1 / 3)


def test_a_cell_is_assigned_to_the_object_it_predicts_best() -> None:
    """Of two objects side by side each gets cells inside itself; better boxes get the higher quality."""
    places, steps = cells((64, 64), CPU, (8,))
    truth = torch.tensor([[[0.0, 0.0, 32.0, 64.0], [32.0, 0.0, 64.0, 64.0]]])
    predicted = truth[:, torch.where(places[:, 0] < 4, 0, 1)].clone()
    predicted[0, ::2] += 6  # every other cell is off
    scores = torch.full((1, 64, 7), 0.5)
    found = assign(predicted, scores, places, steps, truth, torch.tensor([[1, 2]]), torch.tensor([[1, 1]]))
    assert found.positive.any(1).all()
    columns = places[:, 0][found.positive[0]]
    assert ((columns >= 4).long() == found.which[0][found.positive[0]]).all()
    best = found.quality[0] == found.quality.max()
    assert bool((best[::2]).any()) is False


def test_objects_that_do_not_count_get_no_cell() -> None:
    places, steps = cells((64, 64), CPU, (8,))
    truth = torch.tensor([[[0.0, 0.0, 32.0, 32.0], [32.0, 32.0, 64.0, 64.0]]])
    boxes = torch.rand(1, 64, 4).cumsum(-1) * 16
    found = assign(
        boxes, torch.rand(1, 64, 7), places, steps, truth, torch.zeros(1, 2).long(), torch.tensor([[-1, 0]])
    )
    assert not found.positive.any()
    assert found.unsure.sum() == 16


def test_suppression_by_hand() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 0, 11, 10], [1, 0, 11, 10], [30, 30, 30, 40]])
    assert remaining(boxes[None], torch.tensor([[0, 0, 1, 0]])).tolist() == [[True, False, True, False]]


def test_suppression_of_a_batch_is_greedy_in_every_image() -> None:
    """A chain of boxes, each of which covers the next, needs as many rounds as it is long."""
    steps = torch.arange(30.0)[None, :, None] * torch.tensor([1.0, 0, 1, 0])
    chain = torch.tensor([[[0.0, 0, 10, 10]]]) + steps
    corner = torch.rand(2, 30, 2, generator=torch.Generator().manual_seed(3)) * 9
    boxes = torch.cat([chain, torch.cat([corner, corner + 10], -1)])
    labels = torch.randint(2, (3, 30), generator=torch.Generator().manual_seed(4))
    labels[0] = 0
    for own, kinds, found in zip(boxes, labels.tolist(), remaining(boxes, labels).tolist(), strict=True):
        stay: list[int] = []
        for i in range(30):
            rivals = [k for k in stay if kinds[k] == kinds[i]]
            if not rivals or iou(own[i], own[rivals]).max() <= OVERLAP:
                stay.append(i)
        assert [i for i, remains in enumerate(found) if remains] == stay


def test_average_precision_by_hand() -> None:
    """Right, wrong, right of two objects: precision 1 up to recall ½, then 2/3."""
    image = Matched(
        np.array([0.9, 0.8, 0.7]), np.zeros(3), np.array([[0.9, 0], [0.1, 0.2], [0, 0.6]]), np.zeros(2),
        np.array([True, True]),
    )  # fmt: skip
    assert average_precision([image], 0.5) == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert average_precision([image], 0.75) == pytest.approx(51 / 101)
    ignoring = replace(image, counts=np.array([True, False]))
    assert average_precision([ignoring], 0.5) == 1.0


def test_mean_iou_by_hand() -> None:
    assert mean_iou(np.array([[3.0, 1.0], [0.0, 4.0]])) == pytest.approx((3 / 4 + 4 / 5) / 2)


@pytest.mark.parametrize("name", ["street-grid", "street-centre", "street-masks", "street-context"])
def test_a_few_steps_make_the_loss_fall(
    name: str, toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "WIDTHS", (8, 8, 16, 16, 16))
    monkeypatch.setattr(networks, "DEPTHS", (1, 1, 1, 1))
    monkeypatch.setattr(loop, "EVERY", 0.0)
    training = replace(load(name), batch=4, rate=4e-3, adversarial=2.0 if name == "street-grid" else 0.0)
    torch.set_num_threads(1)
    log = loop.train(training, toys, tmp_path, loop.Budget(1e9, 14), CPU)
    parts = [
        {k: v for k, v in row.items() if k in ("objectness", "class", "heat", "pixels")}
        for row in log["curve"]
    ]
    totals = [sum(part.values()) for part in parts]
    assert np.mean(totals[-4:]) < 0.8 * np.mean(totals[:3])
    assert (tmp_path / f"{name}.pt").is_file()
    assert log["val"]


def test_trainings_side_by_side_give_what_each_gives_alone(toys: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    base = replace(load("street-plain"), batch=2, options={"widths": (8, 8, 8, 8, 8), "width": 8})
    both = [(replace(base, name=f"plain-{seed}", seed=seed), loop.Budget(1e9, 2 + seed)) for seed in (1, 2)]
    together = list(loop.train_together(both, toys, tmp_path / "both", CPU, at_once=2))
    assert [log["training"]["name"] for log in together] == ["plain-1", "plain-2"]
    for training, budget in both:
        loop.train(training, toys, tmp_path / "alone", budget, CPU)
        one, other = (
            torch.load(tmp_path / folder / f"{training.name}.pt", weights_only=True)["weights"]
            for folder in ("both", "alone")
        )
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_training_that_fails_stops_no_other(
    toys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.set_num_threads(1)
    good = replace(load("street-plain"), batch=2, options={"widths": (8, 8, 8, 8, 8), "width": 8})
    broken = replace(good, name="broken", batch=-1)
    work = [(broken, loop.Budget(1e9, 2)), (good, loop.Budget(1e9, 2))]
    logs = list(loop.train_together(work, toys, tmp_path, CPU, at_once=2))
    assert [log["training"]["name"] for log in logs] == ["street-plain"]
    assert "[broken] failed" in capsys.readouterr().out
