"""Stylized datasets and training sets: read back, resumed, in several processes, broken input named."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from stormproof.core.errors import InvalidOption, OutputError, StormproofError, UnknownName
from stormproof.corruptions import apply
from stormproof.datasets import find_writer, read_dataset
from stormproof.style.copies import STYLES, Painted, as_jpeg, blend
from stormproof.style.sources import read_style_map
from stormproof.tools.derived import (
    JOURNAL,
    Order,
    Part,
    Version,
    choose_format,
    destination_of,
    make_dataset,
    make_image,
)
from stormproof.tools.manifest import MANIFEST, check, read_manifest
from stormproof.tools.mixes import Mixed, torch_dataset, versions_of

WORLD = "world:val,count=3,size=96x64"
PAINTED = "style[alpha=1,space=feature]"


def order(layout: str = "coco", *versions: Version, data: str = WORLD, suffix: str = ".png") -> Order:
    return Order(data, (Part("", versions or (Painted(PAINTED),)),), layout, "val", suffix, 0)


def reopened(made: Order, out: Path) -> object:
    return read_dataset(str(find_writer(made.format).spec(destination_of(made, made.parts[0], out))))


def test_a_stored_copy_is_what_a_run_sees(tmp_path: Path) -> None:
    made = order("coco", Painted("style[alpha=0.5,on=objects,space=feature]"))
    assert make_dataset(made, tmp_path / "out") == (3, [])
    source, stored = read_dataset(WORLD), reopened(made, tmp_path / "out")
    assert stored.classes == source.classes
    for k in range(3):
        seen = apply(source[k], made.parts[0].versions[0].condition, classes=source.classes)
        assert np.array_equal(stored[k].image, seen.image)
        ours, theirs = stored.truth(k).instances, source.truth(k).instances
        assert ours is not None
        assert theirs is not None
        np.testing.assert_allclose(ours.boxes, theirs.boxes)
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        np.testing.assert_array_equal(ours.crowd, theirs.crowd | theirs.ignore)
        assert all(np.array_equal(a.counts, b.counts) for a, b in zip(ours.masks, theirs.masks, strict=True))
    listed = read_manifest(tmp_path / "out")
    assert len(listed) == 3
    assert all(check(tmp_path / "out", copy) is None for copy in listed)
    assert not (tmp_path / "out" / JOURNAL).exists()


@pytest.mark.parametrize("layout", ["yolo", "voc", "cityscapes", "camvid", "images"])
def test_every_layout_reads_back(tmp_path: Path, layout: str) -> None:
    data = "cityscapes:" + str(tmp_path / "city") if layout == "cityscapes" else WORLD
    if layout == "cityscapes":
        from stormproof.world.formats import SceneOrder as WorldOrder
        from stormproof.world.formats import export

        export(WorldOrder("val", 3, "cityscapes", 96, 64), tmp_path / "city")
    made = order(layout, Painted(PAINTED), data=data)
    assert make_dataset(made, tmp_path / "out") == (3, [])
    source, stored = read_dataset(data), reopened(made, tmp_path / "out")
    assert len(stored) == 3
    for k in range(3):
        assert np.array_equal(stored[k].image, apply(source[k], PAINTED).image)
        ours, theirs = stored.truth(k), source.truth(k)
        if layout in ("yolo", "voc") and theirs.instances is not None and ours.instances is not None:
            kept = ~(theirs.instances.crowd | theirs.instances.ignore)
            if layout == "voc":
                np.testing.assert_allclose(ours.instances.boxes, theirs.instances.boxes)
            else:
                assert len(ours.instances) == kept.sum()
                np.testing.assert_array_equal(ours.instances.labels, theirs.instances.labels[kept])
        if layout in ("cityscapes", "camvid"):
            assert np.array_equal(ours.semantic.labels, theirs.semantic.labels)
        if layout == "cityscapes":
            assert sorted(ours.instances.labels) == sorted(theirs.instances.labels)


def test_the_street_as_cityscapes(tmp_path: Path) -> None:
    """Signs and lights are not instances there; the semantic map keeps them."""
    made = order("cityscapes", Version())
    assert make_dataset(made, tmp_path / "out") == (3, [])
    source, stored = read_dataset(WORLD), reopened(made, tmp_path / "out")
    for k in range(3):
        ours, theirs = stored.truth(k), source.truth(k)
        known = theirs.semantic.labels != theirs.semantic.ignore
        names = np.array([*source.semantic_classes, ""])[np.minimum(theirs.semantic.labels, 12)]
        found = np.array([*stored.semantic_classes, ""])[np.minimum(ours.semantic.labels, 19)]
        assert (names == found)[known].all()
        assert (ours.semantic.labels[~known] == ours.semantic.ignore).all()
        counted = [i for i, label in enumerate(theirs.instances.labels)
                   if source.classes[label] in stored.classes and not theirs.instances.ignore[i]]  # fmt: skip
        whole = ~ours.instances.crowd
        assert sorted(map(tuple, ours.instances.boxes[whole])) == sorted(
            map(tuple, theirs.instances.boxes[counted])
        )


def test_an_archive_can_be_copied(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png")
    (tmp_path / "a.json").write_text(json.dumps([{"bbox": [2, 3, 10, 8], "category": "dog", "area": 33.5}]))
    with tarfile.open(tmp_path / "val.tar", "w") as archive:
        for name in ("a.png", "a.json"):
            archive.add(tmp_path / name, f"deep/{name}")
    made = order("coco", Version(), data=f"tar:{tmp_path / 'val.tar'}")
    assert make_dataset(made, tmp_path / "out") == (1, [])
    stored = reopened(made, tmp_path / "out")
    assert np.array_equal(stored[0].image, pixels)
    assert stored.truth(0).instances.area.tolist() == [33.5]


@pytest.mark.parametrize("layout", ["images", "yolo"])
def test_images_of_similar_names_do_not_overwrite_each_other(tmp_path: Path, layout: str) -> None:
    """a/b and c/b share a file name, a/b and a_b share an id once it is one, and a-b is a_b in Cityscapes."""
    names = ("a/b", "a-b", "a_b", "c/b")
    rows, pixels = [], np.random.default_rng(0).integers(0, 256, (4, 20, 30, 3), np.uint8)
    for k, name in enumerate(names):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(pixels[k]).save(tmp_path / "in" / f"{name}.png")
        rows.append({"id": k, "file_name": f"{name}.png", "width": 30, "height": 20})
    kinds = [{"id": 1, "name": "car"}]
    (tmp_path / "in.json").write_text(json.dumps({"images": rows, "annotations": [], "categories": kinds}))
    data = f"coco:{tmp_path / 'in.json'},images={tmp_path / 'in'}"
    versions = (Version(), Version("gamma_damage@2"))
    made = order(layout, *versions, data=data)
    assert make_dataset(made, tmp_path / "out") == (8, [])
    listed = read_manifest(tmp_path / "out")
    assert len({copy.path for copy in listed}) == len({copy.sha256 for copy in listed}) == 8
    assert all(check(tmp_path / "out", copy) is None for copy in listed)
    stems = [Path(copy.path).stem for copy in listed]
    assert len({stem.replace("_", "-").casefold() for stem in stems}) == 8


def test_versions_of_one_image_do_not_overwrite_another(tmp_path: Path) -> None:
    for k, name in enumerate(("x", "x-gamma_damage")):
        PIL.Image.fromarray(np.full((20, 30, 3), 40 * k + 60, np.uint8)).save(tmp_path / f"{name}.png")
    versions = (Version(), Version("gamma_damage@2"))
    made = order("images", *versions, data=f"images:{tmp_path}")
    assert make_dataset(made, tmp_path / "out") == (4, [])
    assert all(check(tmp_path / "out", copy) is None for copy in read_manifest(tmp_path / "out"))


def test_a_stopped_run_goes_on_and_gives_the_same_files(tmp_path: Path) -> None:
    made, whole, part = order(), tmp_path / "whole", tmp_path / "part"
    make_dataset(made, whole)

    class Stop(Exception):
        pass

    calls = []

    def stop() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise Stop

    with pytest.raises(Stop):
        make_dataset(made, part, advance=stop)
    assert (part / JOURNAL).exists()
    with (part / JOURNAL).open("a") as journal:
        journal.write('{"index": 2, "id"')  # killed while it wrote
    with pytest.raises(OutputError, match="other options"):
        make_dataset(order("yolo"), part)
    left = next(path for path in part.rglob("*.png")).with_name(".0123456789ab.tmp")
    left.write_bytes(b"half an image")
    make_dataset(made, part)
    assert not left.exists()
    for file in whole.rglob("*"):
        if file.is_file():
            assert (part / file.relative_to(whole)).read_bytes() == file.read_bytes(), file.name
    with pytest.raises(OutputError, match="not empty"):
        make_dataset(made, part)


def test_begins_in_a_folder_where_the_journal_was_never_finished(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / f".{JOURNAL}.0123456789ab.tmp").write_bytes(b"half")
    make_dataset(order(), tmp_path / "out")
    assert not list((tmp_path / "out").rglob(".*"))


def test_processes_do_not_change_a_byte(tmp_path: Path) -> None:
    made = order()
    make_dataset(made, tmp_path / "one")
    make_dataset(made, tmp_path / "two", workers=2)
    one, two = (json.loads((tmp_path / name / MANIFEST).read_text()) for name in ("one", "two"))
    assert one == two


def images(folder: Path, count: int = 3) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(count):
        PIL.Image.fromarray(rng.integers(0, 256, (20 + k, 30, 3), np.uint8)).save(folder / f"{k}.png")
    return folder


def test_broken_images_are_named_and_the_rest_is_made(tmp_path: Path) -> None:
    folder = images(tmp_path / "in")
    (folder / "1.png").write_bytes((folder / "1.png").read_bytes()[:60])
    made = order("images", data=f"images:{folder}")
    files, failed = make_dataset(made, tmp_path / "out")
    assert files == 2
    assert len(failed) == 1
    assert "1.png" in failed[0].error
    record = json.loads((tmp_path / "out" / MANIFEST).read_text())
    assert len(record["failed"]) == 1
    images(tmp_path / "again")
    (folder / "1.png").write_bytes((tmp_path / "again" / "1.png").read_bytes())
    assert make_dataset(made, tmp_path / "out") == (3, [])  # the failed one is tried again


def test_unreadable_styles_are_named_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "styles").mkdir()
    (tmp_path / "styles" / "a.jpg").write_bytes(b"no image")
    made = order("coco", Painted(f'style[alpha=1,styles="{tmp_path / "styles"}"]'))
    with pytest.raises(InvalidOption, match=r"1 styles cannot be used.*a\.jpg"):
        make_dataset(made, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_wrong_style_network_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"no graph")
    for network, said in (("foo", "Unknown style network 'foo'"), (f"magenta:{tmp_path}/a.onnx,transform="
                          f"{tmp_path}/a.onnx", r"a\.onnx: onnxruntime cannot load it")):  # fmt: skip
        made = order("coco", Painted(f'style[alpha=1,network="{network}"]'))
        with pytest.raises(StormproofError, match=said):
            make_dataset(made, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_images_without_truth_cannot_be_painted_in_part(tmp_path: Path) -> None:
    data = f"images:{images(tmp_path / 'in')}"
    files, failed = make_dataset(
        order("images", Painted("style[alpha=1,on=objects]"), data=data), tmp_path / "out"
    )
    assert files == 0
    assert all("where objects are" in row.error for row in failed)


def test_several_styles_per_image_and_the_map(tmp_path: Path) -> None:
    versions = tuple(Painted(PAINTED, k, 3) for k in range(3))
    made = order("coco", *versions)
    assert make_dataset(made, tmp_path / "out") == (9, [])
    known = read_style_map(tmp_path / "out" / STYLES)
    for name, styles in known.items():
        assert len(set(styles)) == 3
        assert [version.style(name, 0) for version in versions] == list(styles)
    assert len(list((tmp_path / "out").rglob("*-stylized-*.png"))) == 9
    repeated = Painted(f'style[alpha=1,space=feature,stylemap="{tmp_path / "out" / STYLES}"]')
    make_dataset(order("coco", repeated), tmp_path / "again")
    first, second = (reopened(order(), tmp_path / name) for name in ("again", "out"))
    assert np.array_equal(first[0].image, second[0].image)


def test_feathered_masks_blend_and_hard_ones_do_not() -> None:
    original, painted = np.zeros((9, 21, 3), np.uint8), np.full((9, 21, 3), 200, np.uint8)
    mask = np.zeros((9, 21), bool)
    mask[:, 10:] = True
    hard, soft = blend(original, painted, mask, 0.0), blend(original, painted, mask, 1.5)
    assert set(np.unique(hard)) == {0, 200}
    row = soft[4, :, 0].astype(int)
    assert (np.diff(row) >= 0).all()
    assert 20 < row[9] < 100 < row[10] < 180
    assert row[0] == 0
    assert row[-1] == 200


def test_the_papers_option_recompresses_every_stage(tmp_path: Path) -> None:
    made = order("coco", Painted("style[alpha=1,on=objects,space=feature]", paper=True), suffix=".jpg")
    make_dataset(made, tmp_path / "out")
    source, stored = read_dataset(WORLD), reopened(made, tmp_path / "out")
    sample = source[0]
    painted = as_jpeg(apply(sample, PAINTED).image)
    mask = np.any([m.to_mask() for m in sample.truth.instances.masks], axis=0)
    expected = as_jpeg(np.where(mask[..., None], painted, sample.image))
    assert np.array_equal(stored[0].image, expected)
    assert not np.array_equal(stored[0].image[~mask], sample.image[~mask])  # recompressed, as theirs


def test_each_mix_has_its_versions() -> None:
    assert [len(versions_of(mix)) for mix in ("standard", "stylized", "combined")] == [1, 1, 2]
    assert [v.condition for v in versions_of("corrupted", condition="fog@3")] == ["clean", "fog@3"]
    for wrong in (
        {"mix": "combined", "condition": "fog@3"},
        {"mix": "corrupted"},
        {"mix": "corrupted", "condition": "clean"},
    ):
        with pytest.raises(InvalidOption):
            versions_of(**wrong)
    with pytest.raises(UnknownName, match="combined"):
        versions_of("combine")


def test_combined_training_set_holds_both(tmp_path: Path) -> None:
    made = order("coco", *versions_of("combined"))
    assert make_dataset(made, tmp_path / "out") == (6, [])
    source, stored = read_dataset(WORLD), reopened(made, tmp_path / "out")
    assert np.array_equal(stored[0].image, source[0].image)
    assert len(stored.truth(0).instances) == len(stored.truth(1).instances)
    assert len({*stored.ids}) == 6


def test_a_torch_dataset_is_made_on_the_fly() -> None:
    pytest.importorskip("torch")
    source = read_dataset(WORLD)
    made = torch_dataset(Mixed(source, versions_of("corrupted", condition="contrast@3")))
    assert len(made) == 6
    image, target = made[1]
    assert image.shape == (3, 64, 96)
    seen = apply(source[0], "contrast@3").image
    assert np.array_equal((image.numpy().transpose(1, 2, 0) * 255).round().astype(np.uint8), seen)
    truth = source.truth(0).instances
    assert len(target["boxes"]) == int((~(truth.crowd | truth.ignore)).sum()) == len(target["masks"])
    assert int(target["labels"].min()) >= 1


def test_formats_that_cannot_hold_a_dataset_are_refused() -> None:
    source = read_dataset(WORLD)
    assert choose_format(source, None, "world") == "coco"
    assert choose_format(source, None, "yolo") == "yolo"
    with pytest.raises(UnknownName):
        choose_format(source, "cocoa", "world")
    assert choose_format(source, "cityscapes", "world") == "cityscapes"
    with pytest.raises(InvalidOption, match="'person' is not a KITTI class"):
        choose_format(source, "kitti", "world")


def test_one_image_can_be_made_alone(tmp_path: Path) -> None:
    done = make_image(order(), tmp_path, 1)
    assert not done.error
    assert (tmp_path / done.files[0]["path"]).is_file()


def test_copies_are_made_with_the_orders_seed(tmp_path: Path) -> None:
    """Geometry moves the truth: image and truth of a copy are those of a run with that seed."""
    made = replace(order("coco", Version("elastic_transform@3")), seed=5)
    assert make_dataset(made, tmp_path / "out") == (3, [])
    source, stored = read_dataset(WORLD), reopened(made, tmp_path / "out")
    for k in range(3):
        known = {"classes": source.classes, "semantic_classes": source.semantic_classes}
        seen, other = (apply(source[k], "elastic_transform@3", seed=s, **known) for s in (5, 0))
        assert np.array_equal(stored[k].image, seen.image)
        assert not np.array_equal(stored[k].image, other.image)


def test_every_epoch_has_noise_of_its_own() -> None:
    source = read_dataset(WORLD)
    versions = versions_of("corrupted", condition="gaussian_noise@3")
    first, again, second = (Mixed(source, versions, seed=4, epoch=e)[1].image for e in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, apply(source[0], "gaussian_noise@3", seed=4).image)
