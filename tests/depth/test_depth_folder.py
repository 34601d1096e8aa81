"""Depth that is made once: how sure it is, the folder it is kept in, the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.depth_scene import scene, thinned
from stormproof import apply, datasets, open_dataset
from stormproof.cli import app
from stormproof.core.errors import (
    InvalidOption,
)
from stormproof.core.imagefile import write_image
from stormproof.core.sample import Context, Sample
from stormproof.datasets.dataset import abilities
from stormproof.datasets.depthmaps import DepthEstimate, DepthFolder
from stormproof.datasets.image_files import image_path
from stormproof.depth.estimate import FromGiven, key_of, make_depth
from stormproof.depth.priors import Region


def test_confidence_falls_with_the_distance_from_what_was_measured(tmp_path: Path) -> None:
    image, depth = scene()
    given = np.full_like(depth, np.nan)
    given[:, :40] = depth[:, :40]
    estimate = FromGiven(sky=False)(Sample("a", image, context=Context(depth=given)))
    assert (estimate.confidence[:, :40] == 1).all()
    assert (np.diff(estimate.confidence[0, 40:]) < 0).all()
    folder = DepthFolder(tmp_path)
    folder.write("a", "key", estimate)
    assert folder.confidence("a") == pytest.approx(estimate.confidence, abs=0.006)
    assert DepthFolder(tmp_path).mean_confidence("a") == pytest.approx(estimate.mean_confidence, abs=1e-4)


def test_a_dataset_can_leave_out_depth_of_low_confidence(tmp_path: Path) -> None:
    image, depth = scene()
    folder = DepthFolder(tmp_path / "depth")
    (tmp_path / "images").mkdir()
    for name, share in (("a", 0.1), ("b", 1.0)):
        write_image(tmp_path / "images" / f"{name}.png", image if name == "b" else image // 2)
        folder.write(name, "key", DepthEstimate(depth, np.full(depth.shape, share, np.float32)))
    spec = f"images:{tmp_path}/images,depth={tmp_path}/depth"
    assert len(open_dataset(spec)) == 2
    sure = open_dataset(f"{spec},min_confidence=0.5")
    assert [*sure.ids] == ["b"]
    assert [*open_dataset(f"{spec},min_confidence=1").ids] == ["b"], "as sure as was asked for"
    assert sure[0].id == "b"
    assert image_path(datasets.read_dataset(f"{spec},min_confidence=0.5"), 0) == tmp_path / "images" / "b.png"
    assert sure.fingerprint != open_dataset(spec).fingerprint
    with pytest.raises(InvalidOption, match="leaves no image"):
        open_dataset(f"{spec},min_confidence=1.1")
    with pytest.raises(InvalidOption, match="stormproof depth"):
        open_dataset(f"images:{tmp_path}/images,min_confidence=0.5")


def _half_guessed(tmp_path: Path) -> str:
    """A dataset of three images; the depth of two is a guess in 40 % and 60 % of the pixels."""
    image, depth = scene()
    folder = DepthFolder(tmp_path / "depth")
    (tmp_path / "images").mkdir()
    for name, guessed in (("a", 0.4), ("b", 0.2), ("c", 0.6)):
        write_image(tmp_path / "images" / f"{name}.png", image // (1 + "abc".index(name)))
        confidence = np.ones(depth.shape, np.float32)
        confidence[:, : round(guessed * depth.shape[1])] = 0.2
        folder.write(name, "key", DepthEstimate(depth, confidence))
    return f"images:{tmp_path}/images,depth={tmp_path}/depth"


def test_a_dataset_says_which_depth_is_doubtful_and_how_to_refuse_it(tmp_path: Path) -> None:
    spec = _half_guessed(tmp_path)
    remark = open_dataset(spec).depth_remark
    assert "2 of 3 images" in remark
    assert "more than 30%" in remark
    assert "(a, c)" in remark
    refused = open_dataset(f"{spec},{remark.split('leave them out with ')[1].rstrip('.')}")
    assert [*refused.ids] == ["b"]
    assert refused.depth_remark == ""
    assert abilities(open_dataset(f"images:{tmp_path}/images")).depth_remark == ""


def test_inspect_and_a_run_with_haze_warn_of_doubtful_depth(tmp_path: Path) -> None:
    spec, model = _half_guessed(tmp_path), tmp_path / "nothing.py"
    model.write_text(
        "def detect(images):\n    return [{'boxes': [], 'scores': [], 'labels': []} for _ in images]\n"
    )
    shown = CliRunner().invoke(app, ["inspect", spec, "--json"])
    assert "2 of 3 images" in json.loads(shown.output)["depth_remark"]
    for conditions, warned in (("haze@1", True), ("fog@1", False)):
        out = tmp_path / conditions
        command = ["run", "--model", f"{model}:detect", "--data", spec, "-c", conditions, "--out", str(out)]
        ended = CliRunner().invoke(app, [*command, "--engine", "local"])
        assert ended.exit_code == 0, ended.output
        assert ("is doubtful" in " ".join(ended.output.split())) is warned


def _sample(name: str = "street/0001") -> Sample:
    image, depth = scene()
    return Sample(name, image, context=Context(depth=thinned(depth)))


def test_a_map_is_made_once_and_again_when_its_image_changes(tmp_path: Path) -> None:
    sample, folder = _sample(), DepthFolder(tmp_path / "depth")
    assert make_depth(sample, folder, FromGiven())
    assert not make_depth(sample, folder, FromGiven())
    again = DepthFolder(tmp_path / "depth")
    assert not make_depth(sample, again, FromGiven())
    assert make_depth(sample, again, FromGiven(), (Region(2.0, above=5.0),))
    darker = Sample(sample.id, sample.image // 2, context=sample.context)
    assert key_of(darker, FromGiven()) != key_of(sample, FromGiven())
    assert make_depth(darker, again, FromGiven())
    folder.path(sample.id).unlink()
    assert make_depth(darker, again, FromGiven())


def test_a_journal_cut_short_costs_one_map(tmp_path: Path) -> None:
    folder = DepthFolder(tmp_path)
    make_depth(_sample("a"), folder, FromGiven())
    make_depth(_sample("b"), folder, FromGiven())
    journal = tmp_path / "keys.jsonl"
    journal.write_text(journal.read_text()[:-20])
    again = DepthFolder(tmp_path)
    assert not make_depth(_sample("a"), again, FromGiven())
    assert make_depth(_sample("b"), again, FromGiven())
    last = DepthFolder(tmp_path)
    assert not any(make_depth(_sample(name), last, FromGiven()) for name in "ab")


def _run(*arguments: str) -> str:
    outcome = CliRunner().invoke(app, ["depth", *arguments], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_the_command_makes_depth_that_the_dataset_can_use(tmp_path: Path) -> None:
    image, depth = scene()
    for place in ("left/day", "left/night"):
        (tmp_path / place).mkdir(parents=True)
        write_image(tmp_path / place / "1.png", image)  # two folders, one file name
    np.save(tmp_path / "sparse.npy", thinned(depth))
    dataset, out = f"images:{tmp_path}/left", tmp_path / "depth"
    first = _run(f"{dataset},depth={tmp_path}/sparse.npy", "--from", "given", "--out", str(out))
    assert "2 depth maps made" in first
    second = _run(f"{dataset},depth={tmp_path}/sparse.npy", "--from", "given", "--out", str(out))
    assert "0 depth maps made, 2 kept" in second
    opened = open_dataset(f"{dataset},depth={out}")
    hazy = apply(opened[1], "haze[beta=0.04]").image
    assert opened[1].id == "night/1"
    assert (hazy != opened[1].image).any()


def test_the_command_refuses_options_that_do_not_fit(tmp_path: Path) -> None:
    for arguments, said in (
        (["--from", "model"], "--model"),
        (["--from", "given", "--max-disparity", "64"], "--from stereo"),
    ):
        with pytest.raises(InvalidOption, match=said):
            _run(f"images:{tmp_path}", "--out", str(tmp_path / "d"), *arguments)
