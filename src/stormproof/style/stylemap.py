"""Which style an image gets: drawn by identity, or read from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from stormproof import __version__
from stormproof.core.errors import InvalidOption
from stormproof.core.files import read_json, write_json
from stormproof.core.randomness import Draw


def draw_styles(draw: Draw, names: Sequence[str], count: int = 1) -> tuple[str, ...]:
    """`count` different styles, each equally likely, as in stylize-datasets."""
    if not 1 <= count <= len(names):
        raise InvalidOption(
            f"{count} styles per image: there are {len(names)} styles; ask for 1 to {len(names)}."
        )
    moved: dict[int, int] = {}  # a shuffle that stores only the entries it moved
    chosen = []
    for k, share in enumerate(draw.uniforms("style", count)):
        at = min(k + int(share * (len(names) - k)), len(names) - 1)
        chosen.append(names[moved.get(at, at)])
        moved[at] = moved.get(k, k)
    return tuple(chosen)


def style_draw(seed: int, image_id: str) -> Draw:
    """The draw of the condition `style[…]`, so that stored copies and conditions on the fly agree."""
    return Draw.keyed(seed, image_id, "style", 0)


@dataclass(frozen=True, slots=True)
class StyleMap:
    """The styles of each image, by sample id or by file name."""

    styles: Mapping[str, tuple[str, ...]]
    seed: int | None = None

    @classmethod
    def read(cls, path: str | Path) -> StyleMap:
        """Read the format of `write`, or the plain image → style JSON of the object-centric study."""
        content = read_json(Path(path), error=InvalidOption)
        rows = content.get("styles", content) if isinstance(content, dict) else None
        if not isinstance(rows, dict) or not rows:
            raise InvalidOption(f"{path}: a style map is an object of image: style pairs.")
        styles = {}
        for name, given in rows.items():
            chosen = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else ()
            if not chosen or not all(isinstance(style, str) for style in chosen):
                raise InvalidOption(f"{path}: the style of {name!r} is {given!r}; give a file name.")
            styles[str(name)] = chosen
        seed = content.get("seed") if "styles" in content else None
        return cls(styles, seed if isinstance(seed, int) else None)

    def write(self, path: Path) -> None:
        record = {
            "stormproof": __version__,
            "seed": self.seed,
            "styles": {name: list(styles) for name, styles in sorted(self.styles.items())},
        }
        write_json(path, record)

    def of(self, image_id: str, names: Mapping[str, object]) -> tuple[str, ...]:
        """The styles of an image, as names in `names`."""
        found = self.styles.get(image_id) or self._by_file_name().get(_plain(image_id))
        if not found:
            fix = "draw a new map, or add the image to it"
            raise InvalidOption(f"The style map does not say which style {image_id!r} gets; {fix}.")
        known = {PurePosixPath(name).name: name for name in names}
        missing = [style for style in found if style not in names and PurePosixPath(style).name not in known]
        if missing:
            raise InvalidOption(
                f"The style map names {missing[0]!r}, which is not among the {len(names)} styles."
            )
        return tuple(style if style in names else known[PurePosixPath(style).name] for style in found)

    def _by_file_name(self) -> dict[str, tuple[str, ...]]:
        return {_plain(name): styles for name, styles in self.styles.items()}


def _plain(name: str) -> str:
    """A key that an image's id and its file name share: 139 and 000000000139.jpg are the same."""
    stem = PurePosixPath(name).stem
    return stem.lstrip("0") or "0" if stem.isdigit() else stem
