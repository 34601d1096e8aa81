"""What counts as a file: a device, a pipe or a socket is refused before it is read, whatever asks for it."""

from __future__ import annotations

import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.errors import DatasetError, InvalidImage, InvalidOption, StoreError, StormproofError
from stormproof.core.files import (
    locate,
    open_regular,
    read_bytes,
    read_json,
    read_lines,
    read_npy,
    read_npz,
    read_text,
    read_xml,
    read_yaml,
    sha256,
)
from stormproof.core.imagefile import image_size, read_image

Reader = Callable[[Path], object]
READERS: tuple[Reader, ...] = (
    locate, read_bytes, read_text, read_lines, read_json, read_yaml, read_xml, sha256, read_npy, read_image,
    image_size, lambda path: read_npz(path, "a"),
)  # fmt: skip


def a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


def a_link_to_one(folder: Path) -> Path:
    (folder / "link.json").symlink_to(a_pipe(folder))
    return folder / "link.json"


def a_socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s.json"))
    return folder / "s.json"


def a_device(folder: Path) -> Path:
    return Path("/dev/zero")


@pytest.mark.parametrize("make", [a_pipe, a_link_to_one, a_device])
@pytest.mark.parametrize("read", READERS)
def test_refuses_pipes_and_devices_without_reading(
    make: Callable[[Path], Path], read: Reader, tmp_path: Path
) -> None:
    path = make(tmp_path)
    with pytest.raises(StormproofError, match=r"is a (pipe|device); give a file\.") as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_refuses_a_socket_and_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with pytest.raises(DatasetError, match="is a socket"):
        read_text(a_socket(Path()))
    with pytest.raises(StoreError, match="is a folder; give a file"):
        read_text(tmp_path, error=StoreError)


def test_a_file_larger_than_allowed_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # no block of it exists
    with pytest.raises(DatasetError, match=r"has 1,099,511,627,776 bytes; at most"):
        read_bytes(path)
    with pytest.raises(InvalidImage, match="at most"):
        read_image(path)
    path.write_bytes(b"12345")
    with pytest.raises(InvalidOption, match="has 5 bytes; at most 4"):
        read_bytes(path, at_most=4, error=InvalidOption)
    assert read_bytes(path, at_most=5) == b"12345"


def test_a_file_of_unknown_size_is_read_up_to_the_limit() -> None:
    endless = Path("/proc/self/maps")
    if not endless.exists():
        pytest.skip("needs /proc")
    assert endless.stat().st_size == 0
    assert len(read_bytes(endless)) > 1000
    with pytest.raises(DatasetError, match="more than 1,000 bytes"):
        read_bytes(endless, at_most=1000)


def test_a_missing_file_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text("{}")
    with (
        pytest.raises(DatasetError, match=r"no such file; did you mean .*labels\.json"),
        open_regular(tmp_path / "label.json"),
    ):
        pass
    with pytest.raises(DatasetError, match="cannot be read"):
        read_bytes(tmp_path / "a\0b")


def test_reads_lines_with_any_line_ending(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffa\r\nb\rc\n".encode())
    assert read_text(path) == "a\nb\nc\n"


HEADER = "{{'descr': {}, 'fortran_order': False, 'shape': {}, }}"


def npy(
    descr: str = "'<f4'", shape: str = "(2, 3)", *, version: bytes = b"\x01\x00", data: int = 24
) -> bytes:
    header = HEADER.format(descr, shape).encode()
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + bytes(data)


@pytest.mark.parametrize(
    "content",
    [
        npy(shape="(1000000, 1000000, 1000000)"),
        npy(shape=f"({10**400}, 1)"),
        npy(shape="(200000, 200000)"),  # 160 GB
        npy(shape="(-2, -3)"),
        npy(shape="(2, 3, 4)"),
        npy(shape="(2, 2)"),  # bytes to spare
        npy(shape="'ab'"),
        npy("'|O'", data=8),
        npy("[('a', '|O')]", data=8),
        npy("[('a', '<f4')]"),
        npy("'<f999999999'"),
        npy("'zz'"),
        npy(version=b"\x09\x09"),
        npy(version=b"\x03\x00"),
        npy(shape="(" * 5000),
        npy()[:20],
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        b"\x93NUMPY",
        b"",
    ],
)
def test_checks_what_an_npy_header_states(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="cannot be read as NPY") as caught:
        read_npy(path)
    assert str(path) in str(caught.value)
    packed = tmp_path / "a.npz"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", content)
    with pytest.raises(InvalidOption, match="cannot be read as NPZ"):
        read_npz(packed, "a", error=InvalidOption)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.uint16, np.bool_, ">i4"])
def test_arrays_are_read_as_they_were_written(order: str, kind: object, tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3).astype(kind, order=order)  # type: ignore[call-overload]
    np.save(tmp_path / "a.npy", array)
    np.savez_compressed(tmp_path / "a.npz", a=array, b=array[:1])
    first, second = read_npz(tmp_path / "a.npz", "b", "a")
    for found, right in ((read_npy(tmp_path / "a.npy"), array), (second, array), (first, array[:1])):
        np.testing.assert_array_equal(found, right)
        assert found.dtype == right.dtype
    with pytest.raises(DatasetError, match="no item named"):
        read_npz(tmp_path / "a.npz", "c")
