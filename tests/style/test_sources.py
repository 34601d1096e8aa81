"""Style images: the shipped ones, folders, and files that are tiny, transparent, deep or broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from stormproof.core.errors import InvalidImage, InvalidOption
from stormproof.core.randomness import Draw
from stormproof.style.painting import stylize
from stormproof.style.sources import (
    FOLDER,
    check_style,
    draw_styles,
    find_in_map,
    list_styles,
    read_style,
    read_style_map,
    style_draw,
    write_style_map,
)
from styles import STYLES, drawn


def test_shipped_styles_are_there_and_small() -> None:
    assert list(list_styles()) == sorted(f"{style.__name__}.jpg" for style, _ in STYLES)
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 400_000


def test_a_shipped_style_is_what_its_script_draws() -> None:
    style, colours = next(entry for entry in STYLES if entry[0].__name__ == "mosaic")
    stored = read_style(FOLDER / "mosaic.jpg").astype(int)
    again = drawn(style, colours).astype(int)
    assert np.abs(stored - again).mean() < 14  # JPEG


def test_numbered_styles_differ_and_are_reproducible() -> None:
    looks = list_styles("looks")
    assert len(looks) == 300
    assert list(list_styles("looks-4")) == list(looks)[:4]
    some = [read_style(path) for path in list(looks.values())[:8]]
    assert all(look.shape == (384, 384, 3) and look.std() > 5 for look in some)
    assert len({look.tobytes() for look in some}) == 8
    assert np.array_equal(some[3], read_style(looks["look-000003"]))
    assert check_style(looks["look-000003"]) is None
    image = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    painted = [stylize(image, path, alpha=1.0) for path in list(looks.values())[:2]]
    assert not np.array_equal(*painted)


def save(path: Path, mode: str, size: tuple[int, int] = (20, 16)) -> Path:
    PIL.Image.new(mode, size).save(path)
    return path


def test_odd_styles_are_usable(tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    clear = PIL.Image.new("RGBA", (20, 20), (255, 0, 0, 0))
    clear.save(tmp_path / "clear.png")
    assert (read_style(tmp_path / "clear.png") == 255).all()  # nothing but paper
    PIL.Image.fromarray(np.full((9, 9), 32768, np.uint16)).save(tmp_path / "deep.png")
    assert abs(int(read_style(tmp_path / "deep.png").mean()) - 127) <= 1
    for mode in ("L", "P"):
        assert read_style(save(tmp_path / f"{mode}.png", mode)).shape == (16, 20, 3)
    for size in ((1, 1), (3, 400)):
        style = save(tmp_path / f"{size}.png", "RGB", size)
        assert stylize(image, style, alpha=1.0).shape == image.shape, size


def test_unusable_styles_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"not an image")
    assert "broken.jpg" in (check_style(broken) or "")
    with pytest.raises(InvalidImage, match=r"broken\.jpg"):
        read_style(broken)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidOption, match="contains no images"):
        list_styles(str(tmp_path / "empty"))
    with pytest.raises(InvalidOption, match="does not exist"):
        list_styles(str(tmp_path / "nowhere"))


def test_styles_are_drawn_by_identity_without_repeats() -> None:
    names = [f"{k}.jpg" for k in range(7)]
    draw = Draw.keyed(0, "a", "style", 0)
    assert sorted(draw_styles(draw, names, 7)) == names
    assert draw_styles(draw, names, 3) == draw_styles(draw, names, 7)[:3]
    firsts = [draw_styles(Draw.keyed(0, str(k), "style", 0), names)[0] for k in range(2000)]
    counts = [firsts.count(name) for name in names]
    assert min(counts) > 220  # evenly: 286 each, deviation 16
    assert max(counts) < 350
    with pytest.raises(InvalidOption, match="ask for 1 to 7"):
        draw_styles(draw, names, 8)


def test_style_map_is_kept_and_read_again(tmp_path: Path) -> None:
    names = dict.fromkeys(["x/a.jpg", "b.jpg", "c.jpg"])
    drawn_map = {name: draw_styles(style_draw(3, name), list(names), 2) for name in "12"}
    write_style_map(tmp_path / "map.json", drawn_map, seed=3)
    again = read_style_map(tmp_path / "map.json")
    assert again == drawn_map
    assert find_in_map(again, "2", names) == drawn_map["2"]


def test_the_authors_map_of_file_names_is_read(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text('{"000000000139.jpg": "a.jpg", "other.jpg": "b.jpg"}')
    known = read_style_map(tmp_path / "map.json")
    names = {"deep/a.jpg": None, "b.jpg": None}
    assert find_in_map(known, "139", names) == ("deep/a.jpg",)
    assert find_in_map(known, "other", names) == ("b.jpg",)
    with pytest.raises(InvalidOption, match="does not say which style 'third'"):
        find_in_map(known, "third", names)
    with pytest.raises(InvalidOption, match=r"names 'a\.jpg'"):
        find_in_map(known, "139", {"b.jpg": None})
    (tmp_path / "both.json").write_text('{"139": "b.jpg", "000000000139.jpg": "a.jpg"}')
    assert find_in_map(read_style_map(tmp_path / "both.json"), "139", names) == ("b.jpg",)
    (tmp_path / "list.json").write_text("[1, 2]")
    with pytest.raises(InvalidOption, match="image: style"):
        read_style_map(tmp_path / "list.json")
