"""Sections over the papers' own numbers say what the papers say."""

from __future__ import annotations

import pytest

from stormproof.core.errors import InvalidOption
from stormproof.report.sources import published_scores
from stormproof.report.view import make_view


def table(view: object, name: str) -> dict[str, tuple[object, ...]]:
    found = next(t for t in view.tables() if t.id == name)  # type: ignore[attr-defined]
    return {str(row[0]): tuple(row[1:]) for row in found.rows}


def test_xception_degrades_less_than_mobilenet() -> None:
    """*kamann*, Fig. 10: every Xception has a CD below 100 % of MobileNet-V2."""
    ratios = table(make_view(published_scores("kamann/cityscapes"), reference="MobileNet-V2"), "cd")
    assert ratios["MobileNet-V2"] == (pytest.approx(100.0), pytest.approx(100.0))
    assert all(ratios[name][0] < 100 for name in ratios if name.startswith("Xception"))  # type: ignore[operator]


def test_rcd_of_other_architectures_as_the_text_says() -> None:
    """*kamann*, Fig. 10d with ICNet as the reference; the numbers follow from Table 1 without PSF blur."""
    ratios = table(make_view(published_scores("kamann/cityscapes"), reference="ICNet"), "cd")
    expected = {"FCN8s": 106.6, "DilatedNet": 104.5, "ResNet-38": 109.6, "PSPNet": 115.1, "GSCNN": 106.4}
    for name, value in expected.items():
        found = next(row for key, row in ratios.items() if key.startswith(name))
        assert found[1] == pytest.approx(value, abs=0.1)


def test_defocus_is_predicted_from_blur() -> None:
    view = make_view(published_scores("pezzementi"))
    lines = next(t for t in view.tables() if t.id == "prediction").rows
    r2 = {(row[0], row[1]): row[2] for row in lines}
    assert r2["defocus from gaussian_blur", "all models"] >= 0.98  # type: ignore[operator]
    assert r2["haze from alpha_blend", "all models"] == pytest.approx(0.884, abs=0.001)


def test_liu_errors_are_a_table_of_their_own() -> None:
    ce = table(make_view(published_scores("liu")), "ce")
    assert ce["FRC"][0] == pytest.approx(46.6)
    assert ce["CRC"][-1] == pytest.approx(51.6, abs=0.1)


def test_michaelis_groups_and_gains() -> None:
    view = make_view(published_scores("michaelis/coco/detection"))
    assert {"grid", "groups-michaelis", "corruptions", "cd-categories", "radar", "carry-over"} <= {
        figure.id for figure in view.figures()
    }
    assert "backbone" in view.tags


def test_unknown_papers_are_named() -> None:
    with pytest.raises(InvalidOption, match="michaelis/coco/detection"):
        published_scores("michaelis/mars")
