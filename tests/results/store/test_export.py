"""`stormproof export`: what is written is the run, and is a model again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import PIL.Image
import pytest
from typer.testing import CliRunner, Result

from helpers import scored_models
from helpers.fake_models import MODELS
from helpers.scenes import write_scene, write_street
from stormproof.cli import app
from stormproof.core import files, imagefile
from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid, InvalidOption
from stormproof.datasets import read_dataset
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.results.run import Run
from stormproof.results.store import export as store_export

SCORED = scored_models.MODELS


def export(*arguments: object) -> Result:
    shown = CliRunner().invoke(app, ["export", *map(str, arguments)])
    if isinstance(shown.exception, Exception):
        raise shown.exception
    return shown


def made(tmp_path: Path, model: str, data: str, out: str = "run", **settings: object) -> Path:
    usual = {} if model.startswith("results:") else {"conditions": ["fog@2"]}
    place = {"out": str(tmp_path / out), "engine": "local"}
    summary = run(make_config({"model": model, "data": data, **place, **usual, **settings}))
    assert summary.complete, summary.failures
    return tmp_path / out


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Images without labels, one of them a folder deeper."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "deep").mkdir()
    rng = np.random.default_rng(1)
    for name in ("000007.png", "deep/8 ü.png"):
        PIL.Image.fromarray(rng.integers(0, 255, (48, 64, 3), np.uint8)).save(folder / name)
    return f"images:{folder}"


def test_ids_of_digits_keep_leading_zeros(tmp_path: Path) -> None:
    """KITTI and VOC call their images 000007, which is not COCO's image 7."""
    scene = kitti_boxes(tmp_path / "kitti")
    first = made(tmp_path, f"{MODELS}:brightness_boxes", scene)
    export(first, "--out", tmp_path / "results")
    rows = json.loads((tmp_path / "results" / "clean.json").read_text())
    assert {row["image_id"] for row in rows} == {"000000", "000007"}
    again = made(tmp_path, f"results:{tmp_path / 'results'}", scene, "again")
    assert Run(again).score().per_condition["E"] == pytest.approx(Run(first).score().per_condition["E"])


def test_images_without_labels_keep_the_models_numbers(photos: str, tmp_path: Path) -> None:
    folder = made(tmp_path, f"{MODELS}:brightness_boxes", photos)
    export(folder, "--out", tmp_path / "results")
    rows = json.loads((tmp_path / "results" / "clean.json").read_text())
    assert [row["category_id"] for row in rows] == [0, 1, 0, 0, 1, 0]
    assert {row["image_id"] for row in rows} == {"000007", "deep/8 ü"}


def test_boxes_of_classes_that_the_dataset_lacks_are_left_out(tmp_path: Path) -> None:
    script = tmp_path / "zoo.py"
    script.write_text(
        "from stormproof import Prediction\n"
        "def boxes(images):\n"
        "    return [Prediction([[5, 5, 25, 25], [5, 5, 20, 20]], [0.9, 0.8], [0, 1]) for _ in images]\n"
        "boxes.classes = ('Car', 'unicorn')\n"
    )
    folder = made(tmp_path, f"{script}:boxes", kitti_boxes(tmp_path / "scene"), conditions=["clean"])
    export(folder, "--out", tmp_path / "results")
    rows = json.loads((tmp_path / "results" / "clean.json").read_text())
    assert [(row["image_id"], row["score"]) for row in rows] == [("000000", 0.9), ("000007", 0.9)]


def kitti_boxes(root: Path) -> str:
    """KITTI labels, whose images and classes have no numbers of their own."""
    for name in ("000000", "000007"):
        pixels = np.random.default_rng(int(name)).integers(0, 255, (48, 64, 3), np.uint8)
        (root / "image_2").mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(pixels).save(root / "image_2" / f"{name}.png")
        (root / "label_2").mkdir(exist_ok=True)
        label = "Car 0.00 0 0.0 5 5 25 25 1.5 1.6 3.9 0 0 20 0\n"
        (root / "label_2" / f"{name}.txt").write_text(label)
    return f"kitti:{root}"


@pytest.mark.parametrize("kind", ["world", "kitti"])
def test_results_and_truth_can_be_scored_together(kind: str, tmp_path: Path) -> None:
    """Both use the same ids, so that pycocotools scores one against the other, with the run's own result."""
    pytest.importorskip("pycocotools")
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    data = "world:val,count=4,size=128x80" if kind == "world" else kitti_boxes(tmp_path / "scene")
    script = tmp_path / "oracle.py"
    names = read_dataset(data).classes
    script.write_text(
        "import numpy as np\nfrom stormproof import Prediction\n"
        f"from stormproof.datasets import read_dataset\nDATA = read_dataset({data!r})\n"
        "class Oracle:\n"
        f"    name, classes, semantic_classes, fingerprint = 'oracle', {names!r}, (), '0'\n"
        "    def __call__(self, images):\n        found = []\n"
        "        for image in images:\n"
        "            k = next(k for k in range(len(DATA)) if np.array_equal(DATA[k].image, image))\n"
        "            t = DATA.truth(k).instances\n"
        "            found.append(Prediction(t.boxes, np.full(len(t), 0.9), t.labels))\n"
        "        return found\nmodel = Oracle()\n"
    )
    folder = made(tmp_path, f"{script}:model", data, conditions=["clean"])
    export(folder, "--out", tmp_path / "results")
    export(folder, "--truth", "--out", tmp_path / "truth")
    truth = COCO(str(tmp_path / "truth" / "clean.json"))
    scored = COCOeval(truth, truth.loadRes(str(tmp_path / "results" / "clean.json")), "bbox")
    scored.evaluate()
    scored.accumulate()
    scored.summarize()
    assert scored.stats[0] == pytest.approx(1.0)
    assert scored.stats[0] == pytest.approx(Run(folder).score().per_condition["AP"]["clean"])
    again = made(tmp_path, f"results:{tmp_path / 'results'}", data, "again")
    assert Run(again).score().per_condition["AP"]["clean"] == pytest.approx(1.0)


def test_exported_maps_are_a_model_in_its_own_classes(tmp_path: Path) -> None:
    street = write_street(tmp_path / "street")
    first = made(tmp_path, f"{SCORED}:other_names", street)
    shown = export(first, "--format", "png", "--out", tmp_path / "maps, all")
    assert (tmp_path / "maps, all" / "classes.txt").read_text() == "bright\nghost\ndark\ngrey\n"
    model = shown.stdout.split("as a model: ")[1].strip()
    again = made(tmp_path, model, street, "again")
    assert Run(again).score().per_condition == Run(first).score().per_condition
    assert Run(first).score().per_condition["mIoU"]["clean"] == 1.0


def test_exported_maps_of_nested_images_are_found(photos: str, tmp_path: Path) -> None:
    first = made(tmp_path, f"{SCORED}:thresholds", photos)
    export(first, "--format", "png", "--out", tmp_path / "maps")
    assert (tmp_path / "maps" / "fog@2" / "deep" / "8 ü.png").exists()
    again = made(tmp_path, f"results:{tmp_path / 'maps'}", photos, "again")
    parts = [[p.read_bytes() for p in sorted((f / "parts").iterdir())] for f in (first, again)]
    assert [len(p) for p in parts] == [2, 2]


def test_exported_conditions_of_any_text_can_be_read(tmp_path: Path) -> None:
    scene = write_scene(tmp_path / "scene", images=2)
    file = Path(scene.partition(":")[2].partition(",")[0])
    file.write_text(file.read_text().replace('"dog"', '"hot dög"'))
    texts = ('fog@3[on="hot dög"]', "elastic_transform@3[labels=moved]")
    first = made(tmp_path, f"{MODELS}:brightness_boxes", scene, conditions=[",".join(texts)])
    export(first, "--out", tmp_path / "results")
    again = made(tmp_path, f"results:{tmp_path / 'results'}", scene, "again")
    assert Run(again).score().per_condition["E"] == pytest.approx(Run(first).score().per_condition["E"])
    assert {str(Condition.parse(text)) for text in texts} < {*Run(again).score().per_condition["E"]}


def test_the_wrong_format_writes_nothing(tmp_path: Path) -> None:
    maps = made(tmp_path, f"{SCORED}:thresholds", write_street(tmp_path / "street"), "maps")
    boxes = made(tmp_path, f"{MODELS}:brightness_boxes", write_scene(tmp_path / "scene"), "boxes")
    with pytest.raises(InvalidOption, match="label maps and no objects; export it with --format png"):
        export(maps)
    with pytest.raises(InvalidOption, match="no label maps; export it with --format coco"):
        export(boxes, "--format", "png")
    assert not [*maps.glob("export-*"), *boxes.glob("export-*")]


def test_refuses_to_export_an_incomplete_run(tmp_path: Path) -> None:
    model, scene = f"{MODELS}:brightness_boxes", write_scene(tmp_path / "scene")
    folder = made(tmp_path, model, scene)
    made(tmp_path, model, scene, conditions=["snow@1"], limit=3)
    with pytest.raises(IncompleteGrid, match=r"snow@1 \(9 of 12 missing\)\. Finish it with .* or export the"):
        export(folder)
    shown = export(folder, "--partial", "--out", tmp_path / "results")
    assert "snow@1 (9 of 12 missing)" in shown.stderr
    assert sorted(p.name for p in (tmp_path / "results").iterdir()) == ["clean.json", "fog@2.json"]


def test_another_dataset_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path, f"{MODELS}:brightness_boxes", write_scene(tmp_path / "scene"))
    other = write_scene(tmp_path / "other", images=3)
    with pytest.raises(InvalidOption, match="is not the dataset of this run"):
        export(folder, "--data", other)


@pytest.mark.parametrize("file_format", ["coco", "png"])
def test_two_exports_at_once_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    """The second starts while the first writes a file, and ends before it."""
    objects = file_format == "coco"
    on = write_scene(tmp_path / "scene", images=3) if objects else write_street(tmp_path / "street")
    model = "brightness_boxes" if objects else "thresholds"
    folder = made(tmp_path, f"{MODELS}:{model}", on)
    asked = (folder, "--format", file_format, "--out", tmp_path / "out")
    started = []

    @contextmanager
    def interrupted(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
        with files.whole_file(path, durable=durable) as file:
            if not started:
                started.append(path)
                export(*asked)
            yield file

    for module in (store_export, imagefile):
        monkeypatch.setattr(module, "whole_file", interrupted)
    export(*asked)
    assert started
    assert not list((tmp_path / "out").rglob(".*.tmp"))
    assert len(list((tmp_path / "out").rglob("clean*"))) == 1
