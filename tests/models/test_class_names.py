"""Class names: the very name first, then its Unicode form, then its spelling; never two classes as one."""

from __future__ import annotations

import json
import unicodedata
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.core.errors import InvalidOption
from stormproof.corruptions import apply
from stormproof.datasets import read_dataset
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.models.classes import VOCABULARIES, match_classes
from stormproof.results.run import Run
from stormproof.results.truths import check_classes, chosen_classes

COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "véhicule") for form in ("NFC", "NFD"))
MODEL = f"{MODELS}:contrast_boxes"


@pytest.mark.parametrize("dataset", [*permutations(["W-1", "w 1", "W_1"])])
@pytest.mark.parametrize("model", [*permutations(["W-1", "w 1", "W_1"])])
def test_classes_that_differ_only_in_spelling_stay_distinct(
    model: tuple[str, ...], dataset: tuple[str, ...]
) -> None:
    match = match_classes(model, dataset)
    assert [dataset[label] for label in match.labels] == [*model]


@given(st.lists(st.text(alphabet="aAé_ -e\u0301", min_size=1).filter(str.strip), unique=True))
def test_equal_lists_match_name_by_name(names: list[str]) -> None:
    assert match_classes(names, names).labels == tuple(range(len(names)))


def test_unicode_forms_of_a_name_match() -> None:
    assert match_classes([DECOMPOSED], ["car", COMPOSED]).labels == (1,)
    assert match_classes([COMPOSED, "car"], [DECOMPOSED]).labels == (0, -1)
    assert match_classes([DECOMPOSED, COMPOSED], [COMPOSED, DECOMPOSED]).labels == (1, 0)
    assert match_classes([DECOMPOSED.upper()], [COMPOSED]).labels == (0,)


@pytest.mark.parametrize(
    ("model", "dataset", "words"),
    [
        (["w_1"], ["W-1", "w 1"], r"'W-1' and 'w 1' of the dataset are spelled like 'w_1' of the model"),
        (["W-1", "w 1"], ["W-1"], r"'W-1' and 'w 1' of the model are spelled like 'W-1' of the dataset"),
        (["Car", "CAR"], ["car"], r"'CAR' and 'Car' of the model"),
        ([COMPOSED, DECOMPOSED], [COMPOSED], r"'ve\\u0301hicule' and 'v\\xe9hicule' of the model"),
    ],
)
def test_refuses_a_spelling_that_joins_two_classes(model: list[str], dataset: list[str], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        match_classes(model, dataset)


def test_repeated_names_backgrounds_and_synonyms_may_share_a_class() -> None:
    assert match_classes(["person", "person"], ["person"]).labels == (0, 0)
    assert match_classes(["background", "Background", ""], ["background", "car"]).labels == (0, 0, -1)
    assert match_classes(["tram", "train", "Tram"], ["train"]).labels == (0, 0, 0)


def test_every_pair_of_vocabularies_matches() -> None:
    for ours, theirs in permutations(VOCABULARIES.values(), 2):
        if ours:
            match_classes(ours, theirs)


def test_a_run_with_ambiguous_names_is_refused_before_it_starts(tmp_path: Path) -> None:
    data = write_scene(tmp_path / "scene", images=2)
    file = tmp_path / "scene" / "instances.json"
    file.write_text(file.read_text().replace('"cat"', '"C-AT"').replace('"dog"', '"c at"'))
    results = tmp_path / "clean.json"
    results.write_text(json.dumps([{"image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "score": 0.5}]))
    (tmp_path / "names.txt").write_text("c_at\n")
    model = f"results:{results},classes={tmp_path / 'names.txt'}"
    with pytest.raises(InvalidOption, match=r"'C-AT' and 'c at' of the dataset are spelled like 'c_at'"):
        run(make_config({"model": model, "data": data, "engine": "local", "out": str(tmp_path / "run")}))


def test_names_that_a_user_types_match_in_any_unicode_form(tmp_path: Path) -> None:
    check_classes(DECOMPOSED, (COMPOSED, "car"))
    assert chosen_classes([], [COMPOSED, "car"], DECOMPOSED) == (COMPOSED,)
    data = write_scene(tmp_path / "scene", images=1)
    file = tmp_path / "scene" / "instances.json"
    file.write_text(json.dumps(json.loads(file.read_text().replace('"cat"', f'"{COMPOSED}"'))))
    sample = read_dataset(data)[0]
    typed, own = (apply(sample, f'contrast@5[on="{name}"]').image for name in (DECOMPOSED, COMPOSED))
    assert (typed == own).all()
    run(make_config({"model": MODEL, "data": data, "conditions": ["clean"], "engine": "local",
                     "out": str(tmp_path / "run")}))  # fmt: skip
    assert Run(tmp_path / "run").score(classes=DECOMPOSED).classes == (COMPOSED,)
