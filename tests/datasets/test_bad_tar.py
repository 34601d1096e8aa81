"""Archives that lead astray or are not whole."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from helpers.complaints import complaint, open_everything
from stormproof.core.errors import StormproofError


def tar_with(path: Path, entry: tarfile.TarInfo, content: bytes = b"") -> str:
    entry.size = entry.size or len(content)
    with tarfile.open(path, "w") as archive:
        archive.addfile(entry, io.BytesIO(content.ljust(entry.size)))
    return f"tar:{path}"


@pytest.mark.parametrize("name", ["../a.png", "/etc/a.png", "x/../../a.png", "..\\a.png"])
def test_refuses_members_that_lead_out_of_the_archive(tmp_path: Path, name: str) -> None:
    entry = tarfile.TarInfo("placeholder")
    entry.name = name
    assert "leads out of the archive" in complaint(tar_with(tmp_path / "x.tar", entry))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_refuses_links_and_devices(tmp_path: Path, kind: bytes) -> None:
    entry = tarfile.TarInfo("a.png")
    entry.type, entry.linkname = kind, "/etc/passwd"
    assert "x.tar, a.png: is a link, device or sparse file" in complaint(tar_with(tmp_path / "x.tar", entry))


def test_refuses_members_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormproof.datasets.tar.MAX_MEMBER_BYTES", 10)
    assert "has 11 bytes; the limit is 10" in complaint(
        tar_with(tmp_path / "x.tar", tarfile.TarInfo("a.png"), b"x" * 11)
    )


def test_refuses_samples_that_are_incomplete_or_broken(tmp_path: Path, trees: ModuleType) -> None:
    path, image = tmp_path / "x.tar", trees.png(trees.make_image())
    rows = [{"category": "dog", "bbox": [1, 2, -3, 4]}]
    cases: list[tuple[dict[str, bytes], str]] = [
        ({"a.json": b"[]"}, "sample 'a': has 0 images"),
        ({"a.png": image, "a.jpg": image}, "sample 'a': has 2 images"),
        ({"README": b"hello"}, "README: has no key and ending"),
        ({"a.png": image, "a.json": b"{"}, "a.json, line 1 column 2"),
        ({"a.png": image, "a.json": json.dumps(rows).encode()}, "a.json, annotation 0: bbox [1, 2, -3, 4]"),
        ({"a.png": image[:200]}, "a.png: cannot be decoded"),
        ({"a.png": image, "a.seg.png": image}, "semantic_classes=FILE"),
    ]
    for members, expected in cases:
        trees.write_tar(path, members)
        assert expected in complaint(f"tar:{path}")
    path.write_bytes(b"not a tar" * 100)
    assert "uncompressed tar" in complaint(f"tar:{path}")
    with tarfile.open(tmp_path / "y.tar.gz", "w:gz"):
        pass
    assert "gunzip" in complaint(f"tar:{tmp_path}/y.tar.gz")


def test_refuses_ranges_with_numbers_of_thousands_of_digits(tmp_path: Path) -> None:
    with pytest.raises(StormproofError):
        open_everything(f"tar:{tmp_path}/{{0..{'9' * 5003}}}.tar")
