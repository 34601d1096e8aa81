"""`run.yaml` repeats what a folder holds, not what the last command asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stormproof.results.store.record import covering


def record(images: int, of: int, *conditions: str) -> Any:
    return SimpleNamespace(
        conditions=conditions, images=images, dataset=SimpleNamespace(spec="coco:a.json", images=of)
    )


def widened(settings: dict[str, Any], asked: Any, held: Any) -> dict[str, Any]:
    return covering(settings, asked, held, shard="1/1", out="here")


def test_the_limit_is_the_number_of_images_in_the_folder() -> None:
    asked = {"suite": ["noise"], "limit": 3}
    assert widened(asked, record(3, 8, "clean"), record(5, 8, "clean"))["limit"] == 5
    assert "limit" not in widened(asked, record(3, 8, "clean"), record(8, 8, "clean"))
    assert widened({}, record(2, 8, "clean"), record(2, 8, "clean"))["limit"] == 2


def test_conditions_of_earlier_commands_are_kept() -> None:
    asked = {"benchmark": "coco-c", "root": "/data", "seed": 1}
    wide = widened(asked, record(8, 8, "clean"), record(8, 8, "clean", "fog@1"))
    assert wide == {
        "seed": 1, "shard": "1/1", "out": "here", "data": "coco:a.json", "conditions": ["clean", "fog@1"]
    }  # fmt: skip
    same = widened(asked, record(8, 8, "clean", "fog@1"), record(8, 8, "clean"))
    assert same == {**asked, "shard": "1/1", "out": "here"}
