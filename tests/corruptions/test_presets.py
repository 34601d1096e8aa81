"""The papers' benchmarks: their data, their conditions, and the cells that their means cover."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.corruptions import SUITES, find, find_suite
from stormproof.corruptions.presets import PRESETS, covered_by_mean, find_preset
from stormproof.corruptions.suites import KAMANN

KAMANN_BENCHMARKS = [name for name, preset in PRESETS.items() if preset.cite == "kamann2020"]
OTHERS = [name for name in PRESETS if name not in KAMANN_BENCHMARKS]


@pytest.mark.parametrize("name", KAMANN_BENCHMARKS)
@pytest.mark.parametrize("named", [True, False])
def test_kamanns_means_cover_noise_up_to_severity_3(name: str, *, named: bool) -> None:
    conditions = PRESETS[name].conditions()
    kept = covered_by_mean(conditions, benchmark=name if named else None)
    left_out = {*conditions} - {*kept} - {CLEAN}
    assert left_out == {Condition.of(noise, severity) for noise in KAMANN["noise"] for severity in (4, 5)}
    assert kept == tuple(c for c in conditions if c in kept)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("named", [True, False])
def test_other_means_cover_every_condition(name: str, *, named: bool) -> None:
    conditions = PRESETS[name].conditions()
    assert covered_by_mean(conditions, benchmark=name if named else None) == conditions[1:]


def test_the_suite_kamann_is_the_benchmark_cityscapes_seg_c() -> None:
    suite = find_suite("kamann")
    assert (CLEAN, *suite) == PRESETS["cityscapes-seg-c"].conditions()
    assert len(suite.corruptions) == 19
    assert [c.severity for c in suite if c.corruption == "psf_blur"] == [1, 2, 3]
    assert len(covered_by_mean(suite, suite="kamann")) == len(covered_by_mean((CLEAN, *suite))) == 93 - 10


def test_the_mean_of_a_suite_with_more_conditions_covers_all_of_them() -> None:
    more = (*find_suite("kamann"), Condition.of("zoom_blur", 1))
    assert covered_by_mean(more) == more
    assert len(covered_by_mean(more, suite="kamann")) == len(more) - 10
    noise = find_suite("noise").conditions
    assert covered_by_mean(noise) == noise


def test_noise_with_parameters_of_its_own_always_counts() -> None:
    given = (Condition.parse("gaussian_noise[sigma=0.5]"), Condition.parse("shot_noise@4.5"))
    assert covered_by_mean(given, suite="kamann") == given


def make_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        if text == "/":
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


PLACES = {
    "coco-c": ({"annotations/instances_val2017.json": "{}", "val2017": "/"}, "/annotations/instances_val"),
    "pascal-c": ({"VOCdevkit/VOC2007/ImageSets/Main/test.txt": ""}, "split=test"),
    "cityscapes-c": ({"leftImg8bit/val": "/", "gtFine/val": "/"}, "cityscapes:"),
    "voc2012-seg-c": ({"ImageSets/Segmentation/val.txt": ""}, "voc-seg:"),
    "ade20k-c": ({"ADEChallengeData2016/images/validation": "/",
                  "ADEChallengeData2016/annotations/validation": "/"}, "ade20k:"),
    "bdd100k-camera": ({"labels/det_20/det_val.json": "[]", "images/100k/val": "/"}, "bdd:"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_benchmarks_find_their_data(name: str, tmp_path: Path) -> None:
    files, words = PLACES[name]
    make_tree(tmp_path, files)
    assert words in find_preset(name).locate(tmp_path)


def test_benchmarks_name_the_files_they_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="does not look like COCO 2017 val: it has no annotations/"):
        find_preset("coco-c").locate(tmp_path)
    with pytest.raises(InvalidOption, match="is not a folder"):
        find_preset("coco-c").locate(tmp_path / "nowhere")
    with pytest.raises(UnknownName, match="Did you mean 'coco-c'"):
        find_preset("coco_c")


STREET = {
    "street-c": 76, "street-seg-c": 94, "street-camera": 81, "street-style": 61, "street-people": 50,
}  # fmt: skip


@pytest.mark.parametrize("name", STREET)
def test_benchmarks_of_the_street_need_no_folder(name: str, tmp_path: Path) -> None:
    preset = find_preset(name)
    assert preset.locate(None) == "world:test"
    assert len(preset.conditions()) == STREET[name]
    with pytest.raises(InvalidOption, match="brings its own data: leave out --root"):
        preset.locate(tmp_path)
    with pytest.raises(InvalidOption, match="coco-c needs --root FOLDER"):
        find_preset("coco-c").locate(None)


@pytest.mark.parametrize("name", PRESETS)
def test_benchmarks_run_the_papers_conditions_or_say_what_they_lack(name: str) -> None:
    preset = find_preset(name)
    if preset.lacking:
        with pytest.raises(InvalidOption, match="cannot run: it needs"):
            preset.conditions()
        return
    texts = [str(condition) for condition in preset.conditions()]
    assert texts[0] == "clean"
    assert len(texts) == len(set(texts))
    for suite in preset.suites:
        assert {str(condition) for condition in SUITES[suite]} <= set(texts)


def test_stylized_coco_is_the_papers_sixty_versions_and_clean() -> None:
    assert len(find_preset("stylized-coco").conditions()) == 61
    looks = find_preset("stylized-coco[styles=looks]").conditions()
    assert len(looks) == 61
    assert str(looks[1]) == "style[alpha=0,space=feature,styles=looks]"


def test_michaelis_has_76_conditions() -> None:
    assert len(find_preset("coco-c").conditions()) == 76


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if not preset.lacking])
def test_every_condition_of_a_benchmark_can_be_made(name: str) -> None:
    conditions = PRESETS[name].conditions()
    assert conditions[0].is_clean
    for condition in conditions[1:]:
        assert find(str(condition.corruption)).parameters(condition)


def test_psf_blur_runs_at_its_three_severities_on_cityscapes_only() -> None:
    runs = {name: [str(c) for c in PRESETS[name].conditions()] for name in ("cityscapes-seg-c", "ade20k-c")}
    assert [c for c in runs["cityscapes-seg-c"] if c.startswith("psf")] == [
        "psf_blur@1",
        "psf_blur@2",
        "psf_blur@3",
    ]
    assert not [c for c in runs["ade20k-c"] if c.startswith("psf")]
