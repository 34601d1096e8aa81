"""docs/models.md tells the truth: its card is valid, its tables are complete, its script runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from stormproof.models import ADAPTERS, load_model
from stormproof.models.card import Card, InputCard, complete_card
from stormproof.models.classes import VOCABULARIES
from stormproof.models.decoders import DECODERS

TEXT = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_card_is_valid_and_shows_every_key() -> None:
    (text,) = blocks("yaml")
    written = yaml.safe_load(text)
    complete_card({}, written, "docs/models.md")
    assert {*written["input"]} == {*InputCard.model_fields}
    assert {*written} | {"outputs", "size_input"} == {*Card.model_fields}


@pytest.mark.parametrize("name", [*DECODERS, *VOCABULARIES])
def test_decoders_and_vocabularies_are_listed(name: str) -> None:
    assert f"`{name}`" in TEXT


@pytest.mark.parametrize("kind", ADAPTERS)
def test_adapters_are_listed(kind: str) -> None:
    assert f"`{kind}:" in TEXT


def test_the_script_of_the_page_runs(tmp_path: Path) -> None:
    (text,) = blocks("python")
    (tmp_path / "my_script.py").write_text(text)
    model = load_model(f"{tmp_path}/my_script.py:my_detector")
    assert len(model([np.zeros((9, 9, 3), np.uint8)])[0]) == 1
