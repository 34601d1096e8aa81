"""Write the part of docs/fidelity.md about ten sizes, landscape and portrait.

python docs/make_size_fidelity.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from parts import write_part

from helpers import agreement as a

SIZES = ((32, 32), (48, 64), (64, 48), (97, 131), (131, 97), (150, 200), (200, 150), (320, 120), (240, 320),
         (320, 240))  # fmt: skip
SEVERITIES = (1, 3, 5)
TEXT = """\
## At ten sizes

Made by `python docs/make_size_fidelity.py`: chelsea at ten sizes (width × height), some of them portrait. The
table shows the smallest share of equal values over severities 1, 3 and 5, in %, and in brackets, where any
value is further off, the share within one grey level. Random corruptions use the reference's draws;
`glass_blur` up to 64 pixels only.

"""


def cell(name: str, size: tuple[int, int]) -> str:
    if name == "glass_blur" and max(size) > 64:
        return ""
    image = a.photo("chelsea", size)
    if name in a.DETERMINISTIC:
        found = [a.deterministic(name, severity, image) for severity in SEVERITIES]
    else:
        found = [a.replayed(name, severity, image, 1) for severity in SEVERITIES]
    close = min(one.within_1 for one in found)
    return f"{100 * min(one.equal for one in found):.2f}" + ("" if close == 1 else f" ({100 * close:.3f})")


def main() -> None:
    names = (*a.DETERMINISTIC, *a.REPLAYED)
    head = "| corruption | " + " | ".join(f"{w}×{h}" for h, w in SIZES) + " |\n"
    rows = "".join(f"| {name} | " + " | ".join(cell(name, size) for size in SIZES) + " |\n" for name in names)
    write_part(ROOT / "docs" / "fidelity.md", "sizes", TEXT + head + "|---" * (len(SIZES) + 1) + "|\n" + rows)


if __name__ == "__main__":
    main()
