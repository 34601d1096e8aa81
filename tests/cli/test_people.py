"""`stormproof people`, `detectors` and `scenarios` on small runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.scenes import write_scene
from stormproof.cli import app
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.errors import InvalidOption

MODELS = Path(__file__).parents[1] / "scoring" / "scored_models.py"


def _say(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.output


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    settings = {"model": f"{MODELS}:contrast_boxes", "data": write_scene(folder / "scene", images=8)}
    run(
        make_config(
            {**settings, "out": str(folder / "run"), "conditions": ["fog"], "engine": "local",
             "tags": {"architecture": "oracle", "trained": "toys"}}
        )
    )  # fmt: skip
    return folder / "run"


def test_detectors_print_ce_means_by_tag_and_a_test(ran: Path) -> None:
    said = _say("detectors", str(ran))
    assert "mean (mCE)" in said
    assert "architecture oracle" in said
    assert "paired with each detector" in said


def test_scenarios_print_the_change_by_dataset(ran: Path) -> None:
    assert "(toys)" in _say("scenarios", str(ran))
    with pytest.raises(InvalidOption, match="second run"):
        CliRunner().invoke(app, ["scenarios", str(ran), str(ran)], catch_exceptions=False)
