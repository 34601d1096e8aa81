"""MMDetection's and imgaug's own code gives our pixels after `init_as_imagecorruptions`.

Every test runs in a process of its own, since an import cannot be taken back.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

BEGIN = """
import numpy as np
import stormproof

stormproof.init_as_imagecorruptions()
image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
"""

MMDETECTION = """
import ast
from importlib.util import find_spec
from pathlib import Path

# The class as MMDetection ships it; importing the whole package needs mmcv, which must be compiled.
source = Path(find_spec("mmdet").origin).with_name("datasets") / "transforms" / "transforms.py"
tree = ast.parse(source.read_text(encoding="utf-8"))
imports = [node for node in tree.body if isinstance(node, ast.Try) and "imagecorruptions" in ast.dump(node)]
(corrupt_class,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Corrupt"]
corrupt_class.decorator_list = []  # its registration
space = {"np": np, "BaseTransform": object}
exec(compile(ast.Module([*imports, corrupt_class], []), str(source), "exec"), space)
for name in ("fog", "gaussian_noise", "jpeg_compression"):
    ours = stormproof.corrupt(image, 3, name)
    assert np.array_equal(space["Corrupt"](name, 3).transform({"img": image})["img"], ours), name
"""

IMGAUG = """
# Names that NumPy 2 no longer has.
np.sctypes = {"float": [np.float32, np.float64], "int": [np.int8, np.int16, np.int32, np.int64],
              "uint": [np.uint8, np.uint16, np.uint32, np.uint64]}
import imgaug.augmenters.imgcorruptlike as wrapper

names, functions = wrapper.get_corruption_names("all")
assert names == stormproof.get_corruption_names("all")
for name, function in zip(names, functions):
    if name == "glass_blur":
        continue  # imgaug's own code, which does not run with a current scikit-image
    found = function(image, severity=3, seed=5)
    np.random.seed(5)
    assert np.array_equal(found, stormproof.corrupt(image, 3, name, seed=None)), name
"""


def _run(code: str) -> None:
    ended = subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_offers_the_names_of_imagecorruptions() -> None:
    _run("""
import sys
from types import ModuleType, SimpleNamespace

import imagecorruptions
from imagecorruptions import corrupt, corruption_dict, corruption_tuple, get_corruption_names
from imagecorruptions.corruptions import fog

assert corrupt is stormproof.corrupt
names = get_corruption_names("all")
assert [function.__name__ for function in corruption_tuple] == names == [*corruption_dict]
np.random.seed(3)
first = fog(image, 2)
np.random.seed(3)
assert np.array_equal(first, corrupt(image, 2, "fog", seed=None))
stormproof.init_as_imagecorruptions()  # twice does no harm
for stand_in in (ModuleType("imagecorruptions"), SimpleNamespace()):  # another's
    sys.modules["imagecorruptions"] = stand_in
    stormproof.init_as_imagecorruptions()
    assert sys.modules["imagecorruptions"].corrupt is corrupt
""")


@pytest.mark.skipif(find_spec("imagecorruptions") is None, reason="imagecorruptions is not installed")
@pytest.mark.parametrize("again", ["", "stormproof.init_as_imagecorruptions()"], ids=["once", "twice"])
def test_its_photographs_of_frost_are_still_found(again: str) -> None:
    _run(f"{again}\nstormproof.corrupt(image, 'frost@3[textures=imagecorruptions]')")


@pytest.mark.skipif(find_spec("mmdet") is None, reason="mmdet is not installed")
def test_mmdetections_own_transform_gives_our_pixels() -> None:
    _run(MMDETECTION)


@pytest.mark.skipif(find_spec("imgaug") is None, reason="imgaug is not installed")
def test_imgaugs_own_wrapper_gives_our_pixels() -> None:
    _run(IMGAUG)
