"""Odd models as the text of their scripts: each defines `f`, after `PRELUDE`.

`ODD` says for each what its rows must be: those of another model by name, "own" where only every way to run
it must give the same ones, or "refused" where no cell may get a row.
"""

from __future__ import annotations

from textwrap import dedent

PRELUDE = '''\
import numpy as np


def answer(image):
    """Boxes, scores and labels that follow from the pixels."""
    height, width = image.shape[:2]
    means = image.reshape(-1, 3).mean(axis=0, dtype=np.float64)
    at = np.arange(3)
    x, y = (means[0] * (at + 1)) % (width - 8), (means[1] * (at + 1)) % (height - 8)
    sides = 4 + (means[2] + at) % 4
    scores = ((means.sum() * (at + 1)) % 97) / 97
    return {"boxes": np.stack([x, y, x + sides, y + sides], 1), "scores": scores, "labels": at % 2}


def marked(image):
    """One clean image, which some models stumble over."""
    return bool(image[0, 0, 0] == 255 and image[0, 0, 1] == 0)


'''

_EACH = "def f(images):\n    return [{} for image in images]\n"
_SAME = _EACH.format("answer(image)")
_CHANGED = "def f(images):\n    return [changed(answer(image)) for image in images]\n"
_RAISING = "def f(images):\n    if any(map(marked, images)):\n        {}\n" + _SAME.partition("\n")[2]


def _code(text: str) -> str:
    return dedent(text).lstrip("\n")


def _changing(text: str) -> str:
    """A model whose answers go through `changed`."""
    return _code(text) + _CHANGED


def _field(name: str, expression: str) -> str:
    """A model that answers with another `value` in one field."""
    return _changing(f"""
        def changed(told):
            value = told[{name!r}]
            return {{**told, {name!r}: {expression}}}
    """)


def _one(boxes: str = "[[0] * 4]", scores: str = "[1]", labels: str = "[0]") -> str:
    """A model that answers the marked image alone with one box."""
    return _RAISING.format(f"return [{{'boxes': {boxes}, 'scores': {scores}, 'labels': {labels}}}]")


ODD: dict[str, tuple[str, str]] = {
    "plain": ("own", _SAME),
    # Memory that is used again.
    "one image, reused arrays": ("plain", _code("""
        kept = {"boxes": np.zeros((3, 4)), "scores": np.zeros(3), "labels": np.zeros(3, np.int64)}
        def f(image):
            for name, values in answer(image).items():
                kept[name][...] = values
            return kept
    """)),
    "one image, reused tensors": ("plain", _code("""
        import torch
        boxes, labels = torch.zeros(3, 4, dtype=torch.float64), torch.zeros(3, dtype=torch.int64)
        def f(image):
            told = answer(image)
            boxes[:], labels[:] = torch.from_numpy(told["boxes"]), torch.from_numpy(told["labels"])
            return {"boxes": boxes, "scores": torch.from_numpy(told["scores"]), "labels": labels}
    """)),
    "one image, the same prediction": ("refused", _code("""
        from stormproof import Prediction
        kept = Prediction(np.zeros((3, 4)), np.zeros(3), np.zeros(3, np.int64))
        def f(image):
            told = answer(image)
            kept.boxes[:], kept.scores[:], kept.labels[:] = told["boxes"], told["scores"], told["labels"]
            return kept
    """)),
    "views of one block": ("plain", _code("""
        block = np.zeros((64, 3, 6))
        def f(images):
            for k, image in enumerate(images):
                told = answer(image)
                block[k, :, :4], block[k, :, 4] = told["boxes"], told["scores"]
                block[k, :, 5] = told["labels"]
            return [{"boxes": b[:, :4], "scores": b[:, 4], "labels": b[:, 5]} for b in block[: len(images)]]
    """)),
    "one image, a reused mask": ("a fresh mask", _code("""
        mask = np.zeros((1, 48, 64), bool)
        def f(image):
            mask[0] = image[..., 0] > 96
            return {"boxes": [[0, 0, 9, 9]], "scores": [0.5], "labels": [0], "masks": mask}
    """)),
    "a fresh mask": ("own", _EACH.format(
        '{"boxes": [[0, 0, 9, 9]], "scores": [0.5], "labels": [0], "masks": (image[..., 0] > 96)[None]}'
    )),
    "one image, a reused map": ("a fresh map", _code("""
        plane = np.zeros((48, 64), np.uint8)
        def f(image):
            plane[:] = image[..., 0] // 86
            return plane
    """)),
    "a fresh map": ("own", _EACH.format("image[..., 0] // 86")),
    # Images that are written into.
    "scribbles after answering": ("plain", _code("""
        def f(images):
            told = [answer(image) for image in images]
            for image in images:
                image[...] = 0
            return told
    """)),
    "one image, halved in place": ("halved", _code("""
        def f(image):
            image //= 2
            return answer(image)
    """)),
    "halves what it may, then fails on a list": ("halved", _code("""
        def f(image):
            one = image[0] if isinstance(image, list) else image
            one //= 2
            return answer(image)
    """)),
    "halved": ("own", _EACH.format("answer(image // 2)")),
    "scribbles and takes one at a time": ("plain", _code("""
        def f(images):
            told = [answer(image) for image in images]
            for image in images:
                image[...] = 0
            if len(images) > 1:
                raise MemoryError("one at a time")
            return told
    """)),
    "consumes its list": ("plain", _code("""
        def f(images):
            told = []
            while images:
                told.append(answer(images.pop(0)))
            return told
    """)),
    "reshapes its images": ("plain", _code("""
        def f(images):
            told = [answer(image) for image in images]
            for image in images:
                image.shape = (-1,)
            return told
    """)),
    "locks its images": ("plain", _code("""
        def f(images):
            for image in images:
                image.setflags(write=False)
            return [answer(image) for image in images]
    """)),
    "a map that is a view of the image": ("a fresh map", _code("""
        def f(images):
            for image in images:
                image //= 86
            return [image[..., 0] for image in images]
    """)),
    # Settings of the whole process.
    "reads truncated files": ("plain", _code("""
        from PIL import ImageFile
        ImageFile.LOAD_TRUNCATED_IMAGES = True
    """) + _SAME),
    "allows one pixel": ("plain", "import PIL.Image\nPIL.Image.MAX_IMAGE_PIXELS = 1\n" + _SAME),
    "replaces json.dumps": ("plain", "import json\njson.dumps = lambda *_, **__: '{}'\n" + _SAME),
    "replaces json's encoder": ("plain", _code("""
        import json
        json.JSONEncoder.default = lambda self, value: 7
        json._default_encoder = json.JSONEncoder(indent=3)
    """) + _SAME),
    "replaces hashes": ("plain", "import hashlib\nhashlib.blake2b = hashlib.md5\n" + _SAME),
    "raises NumPy's warnings": ("plain", "np.seterr(all='raise')\n" + _SAME),
    "prints as of old": ("plain", "np.set_printoptions(legacy='1.13', precision=1)\n" + _SAME),
    "seeds everything": ("plain", _code("""
        import random
        def f(images):
            np.random.seed(0)
            random.seed(0)
            return [answer(image) for image in images]
    """)),
    "tunes OpenCV": ("plain", _code("""
        import cv2
        cv2.setNumThreads(3)
        cv2.setUseOptimized(False)
        cv2.setRNGSeed(5)
    """) + _SAME),
    "changes folder when opened": ("plain", "import os\nos.chdir('/')\n" + _SAME),
    "changes folder when called": ("plain", _code("""
        import os
        def f(images):
            os.chdir("/")
            return [answer(image) for image in images]
    """)),
    "makes warnings errors": ("plain", _code("""
        import warnings
        warnings.simplefilter("error")
        def f(image):
            return answer(image)
    """)),
    "decimal and locale": ("plain", _code("""
        import decimal, locale
        decimal.getcontext().prec = 2
        locale.setlocale(locale.LC_ALL, "C")
    """) + _SAME),
    "torch in double": ("plain", "import torch\ntorch.set_default_dtype(torch.float64)\n" + _SAME),
    "clears the environment": ("plain", _code("""
        import os
        def f(images):
            os.environ.clear()
            return [answer(image) for image in images]
    """)),
    "ignores signals": ("plain", _code("""
        import signal
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
    """) + _SAME),
    "stops the clock": ("plain", "import time\ntime.perf_counter = time.time = lambda: 0.0\n" + _SAME),
    "forks": ("plain", _code("""
        import multiprocessing
        multiprocessing.set_start_method("fork", force=True)
    """) + _SAME),
    "talks": ("plain", _code("""
        import sys
        def f(images):
            print("\\x1b[2J", "é" * 1000, file=sys.stderr)
            print("row")
            return [answer(image) for image in images]
    """)),
    "predicts in threads": ("plain", _code("""
        from concurrent.futures import ThreadPoolExecutor
        def f(images):
            with ThreadPoolExecutor(3) as pool:
                return list(pool.map(answer, images))
    """)),
    # Exceptions on one clean image; its other condition is answered.
    "raises": ("raises", _RAISING.format("raise ArithmeticError('cheese')")),
    "raises without words": ("raises", _code("""
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError
            __repr__ = __str__
    """) + _RAISING.format("raise Mute")),
    "is cancelled": ("raises", "import asyncio\n" + _RAISING.format("raise asyncio.CancelledError")),
    "exits": ("raises", _RAISING.format("raise SystemExit(3)")),
    "ends a generator": ("raises", _RAISING.format("raise GeneratorExit")),
    "stops an iteration": ("raises", _RAISING.format("raise StopIteration")),
    "raises a group": ("raises", _RAISING.format("raise BaseExceptionGroup('g', [SystemExit(1)])")),
    "raises half a character": ("raises", _RAISING.format("raise ValueError(chr(0xD800))")),
    "raises ten megabytes": ("raises", _RAISING.format("raise ValueError('x' * 10**7)")),
    "raises what cannot be pickled": ("raises", _code("""
        class Stuck(Exception):
            def __init__(self, one, two):
                self.lock = lambda: one
    """) + _RAISING.format("raise Stuck(1, 2)")),
    "recurses": ("raises", "def down():\n    return down()\n" + _RAISING.format("down()")),
    "fails inside a StormproofError": ("raises", "from stormproof.core.errors import StoreError\n"
                                       + _RAISING.format("raise StoreError('the folder is broken')")),
    "NaN boxes": ("raises", _one(boxes="[[np.nan] * 4]")),
    "NaN scores": ("raises", _one(scores="[np.nan]")),
    "huge labels": ("raises", _one(labels="[2**62]")),
    "negative labels": ("raises", _one(labels="[-1]")),
    "turned boxes": ("raises", _one(boxes="[[5, 0, 1, 9]]")),
    "a score of two": ("raises", _one(scores="[2]")),
    "a huge map": ("raises", _RAISING.format("return [np.full((48, 64), 70_000)]")),
    "a map of another size": ("raises", _RAISING.format("return [np.zeros((5, 5), np.uint8)]")),
    "None for one": ("raises", _RAISING.format("return [None]")),
    # Types and layouts.
    "lists": ("plain", _EACH.format("{k: v.tolist() for k, v in answer(image).items()}")),
    "tuples in a tuple": ("plain", _code("""
        def f(images):
            told = [answer(image) for image in images]
            return tuple({**one, "boxes": tuple(map(tuple, one["boxes"]))} for one in told)
    """)),
    "tensors with gradients": ("plain", _changing("""
        import torch
        def changed(told):
            return {k: torch.from_numpy(v).requires_grad_(k != "labels") for k, v in told.items()}
    """)),
    "bfloat16": ("own", _changing("""
        import torch
        def changed(told):
            boxes = torch.from_numpy(told["boxes"]).to(torch.bfloat16)
            return {**told, "boxes": boxes, "scores": torch.from_numpy(told["scores"]).to(torch.bfloat16)}
    """)),
    "float16": ("own", _field("boxes", "np.float16(value)")),
    "long doubles": ("plain", _field("boxes", "np.longdouble(value)")),
    "bytes in the other order": ("plain", _changing("""
        def changed(told):
            return {k: v.astype(v.dtype.newbyteorder()) for k, v in told.items()}
    """)),
    "not contiguous": ("plain", _changing("""
        def changed(told):
            wide = np.zeros((6, 8))
            wide[::2, ::2] = told["boxes"]
            return {**told, "boxes": np.asfortranarray(wide)[::2, ::2], "labels": told["labels"][::-1][::-1]}
    """)),
    "labels as floats": ("plain", _field("labels", "np.float32(value)")),
    "labels as bytes": ("plain", _field("labels", "np.int8(value)")),
    "labels as names": ("plain", _field("labels", "[['cat', 'dog'][label] for label in value]")
                        + "f.classes = ['cat', 'dog']\n"),
    "columns of a table": ("plain", _changing("""
        import pandas
        def changed(told):
            return {"boxes": pandas.DataFrame(told["boxes"]), "scores": pandas.Series(told["scores"]),
                    "labels": pandas.Series(told["labels"])}
    """)),
    "a mapping of its own": ("plain", _code("""
        from collections import ChainMap
        def f(images):
            return [ChainMap(answer(image)) for image in images]
    """)),
    "predictions of a subclass": ("plain", _code("""
        from stormproof import Prediction
        class Mine(Prediction):
            pass
        def f(images):
            return [Mine(**answer(image)) for image in images]
    """)),
    "an array of dicts": ("plain", _code("""
        def f(images):
            told = np.empty(len(images), object)
            told[:] = [answer(image) for image in images]
            return told
    """)),
    "an object with a method": ("plain", _code("""
        class Detector:
            def run(self, images):
                return [answer(image) for image in images]
        f = Detector().run
    """)),
    "a partial function": ("plain", _code("""
        from functools import partial
        def both(how, images):
            return [how(image) for image in images]
        f = partial(both, answer)
    """)),
    "nothing found": ("own", _EACH.format("{'boxes': [], 'scores': [], 'labels': []}")),
    "empty dicts": ("nothing found", _EACH.format("{}")),
    "a box without brackets": ("own", _EACH.format("{'boxes': [0, 0, 5, 5], 'scores': [1], 'labels': [1]}")),
    "maps in one array": ("a fresh map", _code("""
        def f(images):
            return np.stack([image[..., 0] // 86 for image in images])
    """)),
    "masks as tensors of probabilities": ("a fresh mask", _code("""
        import torch
        def f(images):
            masks = [torch.from_numpy(np.where(image[..., 0] > 96, 0.9, 0.1)) for image in images]
            box = {"boxes": [[0, 0, 9, 9]], "scores": [0.5], "labels": [0]}
            return [{**box, "masks": mask[None, None]} for mask in masks]
    """)),
    # What cannot be read, for any image.
    "four rows of boxes": ("refused", _field("boxes", "np.sort(value, axis=None).reshape(4, 3)")),
    "scores in a column": ("refused", _field("scores", "value[:, None]")),
    "masked arrays": ("refused", _field("boxes", "np.ma.masked_array(value, value > 3)")),
    "arrays of objects": ("refused", _field("boxes", "np.array([None] * 12, object).reshape(3, 4)")),
    "complex numbers": ("refused", _field("boxes", "value + 1j")),
    "names without classes": ("refused", _field("labels", "['cat'] * len(value)")),
    "None": ("refused", "def f(images):\n    return None\n"),
    "a generator": ("refused", "def f(images):\n    yield from map(answer, images)\n"),
    "a coroutine": ("refused", "async def f(images):\n    return [answer(image) for image in images]\n"),
    "a string": ("refused", "def f(images):\n    return 'x' * len(images)\n"),
    "unknown keys": ("refused", _EACH.format("{**answer(image), 'box': 3}")),
    "a mock": ("refused", "from unittest.mock import MagicMock\nf = MagicMock()\n"),
}  # fmt: skip


def script(name: str) -> str:
    """The text of an odd model's script."""
    return PRELUDE + ODD[name][1]
