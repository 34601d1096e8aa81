"""From nothing to a page: build both wheels, install them into an empty environment, and use them there.

    python tests/wheel.py --out dist        # make test-wheel

Prints how long each step took and how large it came out; fails if a wheel is too large or a step fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 5_000_000  # bytes of the wheel that everyone installs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _step("build", [sys.executable, "-m", "build", "--wheel", "--outdir", str(options.out), str(ROOT)])
        _step(
            "build networks",
            [sys.executable, "-m", "build", "--wheel", "--outdir", str(options.out), str(ROOT / "networks")],
        )
        own, networks = _newest(options.out, "stormproof"), _newest(options.out, "stormproof_networks")
        for wheel in (own, networks):
            print(f"  {wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
        assert own.stat().st_size <= LARGEST, f"{own.name} is larger than {LARGEST / 1e6:g} MB"
        venv.create(place / "empty", with_pip=True)
        binaries = place / "empty" / ("Scripts" if sys.platform == "win32" else "bin")
        pip = [str(binaries / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        _step("pip install stormproof", [*pip, str(own)])
        stormproof = str(binaries / "stormproof")
        told = subprocess.run(
            [stormproof, "demo", "--out", "demo"], cwd=place, capture_output=True, text=True
        )
        assert told.returncode, "the demo ran without its networks"
        assert "pip install 'stormproof[demo]'" in " ".join(told.stderr.split()), told.stderr
        _step("pip install stormproof-networks", [*pip, str(networks)])
        size = sum(file.stat().st_size for file in (place / "empty").rglob("*") if file.is_file())
        print(f"  the environment: {size / 1e6:.0f} MB")
        _step("stormproof demo", [stormproof, "demo", "--scenes", "2", "--out", "demo"], place)
        assert (place / "demo" / "report.html").stat().st_size > 100_000


def _newest(folder: Path, name: str) -> Path:
    return max(folder.glob(f"{name}-[0-9]*.whl"), key=lambda wheel: wheel.stat().st_mtime)


def _step(what: str, command: list[str], folder: Path = ROOT) -> None:
    begun = time.monotonic()
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{what} failed\n{ended.stdout[-2000:]}\n{ended.stderr[-4000:]}"
    print(f"{what}: {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
