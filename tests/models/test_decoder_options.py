"""The options of decoders: described, listed on their page, and named where one is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormproof.core.errors import ModelError
from stormproof.core.spec import keyword_options
from stormproof.models.card import complete_card
from stormproof.models.decoders import DECODERS, option_words

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_option_is_described_and_every_description_used() -> None:
    taken = {name for decoder in DECODERS.values() for name in keyword_options(decoder.function)}
    assert taken == {*option_words()}


def test_the_table_of_options_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import make_decoders

    page = make_decoders.PAGE.read_text(encoding="utf-8")
    assert make_decoders.table() in page, "python docs/make_decoders.py renews it"


def test_the_table_of_decoders_is_complete() -> None:
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    assert [name for name in DECODERS if f"\n| `{name}` |" not in page] == []


@pytest.mark.parametrize(
    ("decoder", "words"),
    [
        ("ssd-raw", "It takes: logits, background, layers, scales."),
        ("yolov8", "It takes: classes."),
    ],
)
def test_an_unknown_option_lists_the_allowed_ones(decoder: str, words: str) -> None:
    card = {"decoder": decoder, "input": {"size": 64}, "options": {"logit": True}}
    with pytest.raises(ModelError) as error:
        complete_card({}, card, "my.yaml")
    assert words in str(error.value)
    assert "'logit'" in str(error.value)
