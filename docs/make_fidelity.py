"""Write the first part of docs/fidelity.md: how every corruption agrees with imagecorruptions 1.1.2.

python docs/make_fidelity.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from parts import write_part

from helpers import agreement as a
from stormproof.core.condition import SEVERITIES

INTRODUCTION = """\
# Fidelity to imagecorruptions 1.1.2

Made by `python docs/make_fidelity.py`; the bounds are enforced by `tests/corruptions/test_fidelity.py`.
Photographs: astronaut, chelsea and coffee of scikit-image, at 131×97, 320×240 and 640×480 pixels. A cell
holds the worst of the three.

"""

DETERMINISTIC = """\
## Without randomness

Share of values within one grey level (in brackets: equal) at severities 1 to 5.

| corruption | 1 | 2 | 3 | 4 | 5 | largest mean difference |
|---|---|---|---|---|---|---|
"""

REPLAYED = """\

## With the reference's own random draws

The recipe uses the numbers that the reference drew (offsets, angles, noise fields), so only arithmetic can
differ. (`glass_blur` at the smallest size only: the reference scatters pixels in pure Python.)

| corruption | 1 | 2 | 3 | 4 | 5 | largest mean difference |
|---|---|---|---|---|---|---|
"""

SAMPLED = """\

## With our own draws

Mean over seeds (40; `glass_blur` 6) of statistics of the corrupted chelsea at 96×72, ours / reference, at
severity 3. The last column is the largest distance, in standard errors of the difference, over all severities
and all 43 statistics (mean, standard deviation, SNR, 32 histogram bins, 8 rings of the power spectrum). With
over two thousand comparisons, chance alone gives a few distances of 3 to 4; the tests fail at 5.

| corruption | mean | standard deviation | SNR, dB | low, middle, high frequencies, dB | largest distance |
|---|---|---|---|---|---|
"""

NOTES = """\

## What differs, and why

* **Truncation of exact ties.** The reference truncates doubles; where rounding noise leaves a result just
  below a whole number, it drops to the level below. Stormproof keeps the whole number. This explains nearly
  all of the difference in `defocus_blur` 1, `brightness` and `saturate`.
* **Quantiles.** Noise is drawn from 65,536 (Gaussian, impulse) or 4,096 (shot, speckle) equally likely
  outcomes, so values beyond ±4.3 and ±3.7 standard deviations do not occur.
* **Frost.** The table uses the reference's photographs (`frost@3[textures=imagecorruptions]`). The built-in
  textures are drawn by Stormproof and match each photograph's mean and spread per channel.
"""


def cells(measured: list[a.Agreement]) -> str:
    """The worst agreement over photographs."""
    return f"{100 * min(m.within_1 for m in measured):.2f} % ({100 * min(m.equal for m in measured):.1f})"


def agreement_row(name: str, by_severity: list[list[a.Agreement]]) -> str:
    bias = max((m.bias for measured in by_severity for m in measured), key=abs)
    return f"| {name} | {' | '.join(map(cells, by_severity))} | {bias:+.3f} |\n"


def deterministic_rows() -> str:
    text = ""
    for name in a.DETERMINISTIC:
        photos = [a.photo(p, s) for p, s in zip(a.PHOTOS, a.SIZES, strict=True)]
        text += agreement_row(name, [[a.deterministic(name, s, p) for p in photos] for s in SEVERITIES])
    return text


def replayed_rows() -> str:
    text = ""
    for name in a.REPLAYED:
        sizes = a.SIZES[:1] if name == "glass_blur" else a.SIZES
        photos = [a.photo(p, s) for p, s in zip(a.PHOTOS, sizes, strict=False)]
        rows = [[a.replayed(name, s, p, seed) for seed, p in enumerate(photos)] for s in SEVERITIES]
        text += agreement_row(name, rows)
    return text


def sampled_rows() -> str:
    text = ""
    for name in a.RANDOM:
        seeds = 6 if name == "glass_blur" else 40
        pairs = [a.sampled(name, s, a.photo("chelsea", (72, 96)), seeds) for s in SEVERITIES]
        distance = max(float(a.standard_errors_apart(*pair, a.FLOOR).max()) for pair in pairs)
        ours, theirs = (np.mean(side, axis=0) for side in pairs[2])
        mean, sd, snr = (f"{ours[i]:.2f} / {theirs[i]:.2f}" for i in range(3))
        rings = ", ".join(f"{ours[i]:.1f} / {theirs[i]:.1f}" for i in (36, 38, 42))
        text += f"| {name} | {mean} | {sd} | {snr} | {rings} | {distance:.1f} |\n"
    return text


def main() -> None:
    text = INTRODUCTION + DETERMINISTIC + deterministic_rows() + REPLAYED + replayed_rows()
    text += SAMPLED + sampled_rows() + NOTES
    write_part(ROOT / "docs" / "fidelity.md", "imagecorruptions", text)


if __name__ == "__main__":
    main()
