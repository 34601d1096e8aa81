"""Write many scenes, in several processes; the files are the same however many there are."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stormproof.core.errors import InvalidOption, OutputError, UnknownName
from stormproof.core.processes import spread, worker_count
from stormproof.world.samples import BASELINE, SPLITS, check_scene, render
from stormproof.world.writers.camvid import CAMVID
from stormproof.world.writers.cityscapes import CITYSCAPES
from stormproof.world.writers.coco import COCO
from stormproof.world.writers.format import Format, Job, Record
from stormproof.world.writers.kitti import KITTI
from stormproof.world.writers.voc import VOC
from stormproof.world.writers.yolo import YOLO

FORMATS: Mapping[str, Format] = {
    "coco": COCO,
    "voc": VOC,
    "cityscapes": CITYSCAPES,
    "yolo": YOLO,
    "kitti": KITTI,
    "camvid": CAMVID,
}


@dataclass(frozen=True, slots=True)
class Order:
    """What to write: scenes 0 … count-1 of a split, at a size, in a format."""

    split: str
    count: int
    format: str
    width: int = 512
    height: int = 320
    seed: int = 0
    stereo: bool = False
    baseline: float = BASELINE
    suffix: str = ".png"

    def check(self) -> None:
        if self.format not in FORMATS:
            raise UnknownName("format", self.format, FORMATS, f"Formats: {', '.join(FORMATS)}.")
        check_scene(self.split, 0, self.width, self.height, self.baseline)
        if not 0 < self.count <= SPLITS[self.split]:
            raise InvalidOption(
                f"Count {self.count}: split {self.split!r} has 1 to {SPLITS[self.split]} scenes."
            )


def _write(order: Order, root: Path, index: int) -> tuple[int, Record]:
    """Render and write one scene; runs in a worker."""
    rendered = render(
        order.seed,
        order.split,
        index,
        width=order.width,
        height=order.height,
        stereo=order.stereo,
        baseline=order.baseline,
    )
    return index, FORMATS[order.format].scene(Job(root, order.split, order.suffix), index, rendered)


def check_destination(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds something, a file, and a place where nothing may be written."""
    if out.is_dir():
        if any(out.iterdir()) and not overwrite:
            raise OutputError(f"{out} is not empty; choose another folder, or add --overwrite to replace it.")
    elif out.exists():
        raise OutputError(f"{out} is a file; choose a folder.")
    above = next(folder for folder in out.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise OutputError(f"Cannot write to {out}: {above} is not a folder you may write to; choose another.")


def export(
    order: Order,
    out: Path,
    *,
    workers: int = 1,
    overwrite: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Write the scenes to a new folder `out`, which appears only once it is complete.

    `advance` is called after every scene. Interrupted, it leaves no half-written dataset behind.
    """
    order.check()
    if workers < 0:
        raise InvalidOption(f"Workers {workers}: give 0 for one per core, or how many processes to use.")
    workers = min(worker_count(workers), max(1, order.count // 4))
    try:
        check_destination(out, overwrite=overwrite)
        out.parent.mkdir(parents=True, exist_ok=True)
        begun = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        try:
            records: dict[int, Record] = {}
            for index, record in spread(partial(_write, order, begun), range(order.count), workers=workers):
                records[index] = record
                advance()
            in_order = [records[index] for index in range(order.count)]
            FORMATS[order.format].finish(Job(begun, order.split, order.suffix), in_order)
            begun.chmod(0o755)
            if out.exists():
                shutil.rmtree(out)
            begun.rename(out)
        finally:
            shutil.rmtree(begun, ignore_errors=True)
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        raise OutputError(
            f"Cannot write to {out}: {error.strerror}; choose a folder you may write to."
        ) from error
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"Cannot write to {out}: {error}.") from error
