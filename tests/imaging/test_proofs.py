"""A kernel that was found equal to its twin is not compared again by the next process."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from stormproof.imaging.gpu import proofs, triton_kernels

IMAGES = torch.zeros((2, 4, 5, 3), dtype=torch.uint8)


@pytest.fixture
def twins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """As on a GPU with an empty cache folder; the twins that were asked are noted."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(proofs, "_on_gpu", lambda: True)
    monkeypatch.setattr(proofs, "_file", lambda: tmp_path / "stormproof" / "kernels" / "this.txt")
    monkeypatch.setattr(triton_kernels, "usable", lambda _: True)
    next_process(monkeypatch)
    return []


def next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs._known.cache_clear()
    monkeypatch.setattr(triton_kernels, "trusted", set())
    monkeypatch.setattr(triton_kernels, "refused", {})


def plus_one(images: torch.Tensor) -> torch.Tensor:
    return images + 1


def plus_two(images: torch.Tensor) -> torch.Tensor:
    return images + 2


def corrupted(kernel: object, twins: list[str], images: torch.Tensor = IMAGES) -> torch.Tensor:
    return triton_kernels.run(kernel, lambda own: twins.append(kernel.__name__) or own + 1, images)


def test_the_next_process_does_not_compare_again(twins: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        assert torch.equal(corrupted(plus_one, twins), IMAGES + 1)
        next_process(monkeypatch)
    assert twins == ["plus_one"]
    corrupted(plus_one, twins, IMAGES[..., :1])  # another number of channels was not compared yet
    assert twins == ["plus_one"] * 2


def test_a_refused_kernel_is_not_remembered(twins: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        assert torch.equal(corrupted(plus_two, twins), IMAGES + 1)
        assert list(triton_kernels.refused.values()) == ["120 of 120 values differ"]
        next_process(monkeypatch)
    assert not proofs._file().exists()


def test_keeps_what_other_processes_compared(twins: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    corrupted(plus_one, twins)
    with proofs._file().open("a") as file:
        file.write("found by another process\n")
    corrupted(plus_one, twins, IMAGES[..., :1])
    assert len(proofs._file().read_text().splitlines()) == 3
    assert len(list(proofs._file().parent.iterdir())) == 1  # nothing half written is left


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"('plus_one'"], ids=["bytes", "empty", "cut off"])
def test_ignores_a_damaged_file(twins: list[str], monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    proofs._file().parent.mkdir(parents=True)
    proofs._file().write_bytes(content)
    corrupted(plus_one, twins)
    assert twins == ["plus_one"]
    next_process(monkeypatch)
    corrupted(plus_one, twins)
    assert twins == ["plus_one"]


def test_works_in_a_folder_that_cannot_be_written_to(
    twins: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "stormproof").write_text("a file where the folder should be")
    assert torch.equal(corrupted(plus_one, twins), IMAGES + 1)
    assert torch.equal(corrupted(plus_one, twins), IMAGES + 1)
    assert twins == ["plus_one"]


def test_leaves_nothing_beside_a_file_that_cannot_be_written(twins: list[str]) -> None:
    proofs._file().mkdir(parents=True)  # a folder where the file should be
    assert torch.equal(corrupted(plus_one, twins), IMAGES + 1)
    assert list(proofs._file().parent.iterdir()) == [proofs._file()]


def test_other_kernels_versions_and_devices_are_compared_anew(tmp_path: Path) -> None:
    source = tmp_path / "kernels.py"
    source.write_text("a = 1")
    first = proofs.identity(("H200", "2.11"), [source])
    assert first == proofs.identity(("H200", "2.11"), [source])
    others = {proofs.identity(machine, [source]) for machine in (("H100", "2.11"), ("H200", "2.12"))}
    source.write_text("a = 2")
    others.add(proofs.identity(("H200", "2.11"), [source]))
    assert len(others - {first}) == 3
