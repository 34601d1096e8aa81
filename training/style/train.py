"""Trains the built-in style network: `python train.py --data data.npz --encoder DIR --out DIR`.

A part of a batch is reconstructed (α = 0), the others painted: at α = 1, or two times in five at a random α.
The encoder is the distilled one (wct16x_4SE) and stays as it is; it also judges what the decoder paints.
Needs torch, NumPy and Pillow only. Writes the weights (float16, averaged over steps), the log and a sheet of
paintings as it goes.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import PIL.Image
import torch
from data import HELD_PAINTING, HELD_PHOTO, HELD_SCENE, PAINTING, PROCEDURAL, Atlas
from losses import Balance, distance_left, lattice, level_units, losses, mixed
from student import Critic, Student, read_encoder
from torch import Tensor, nn
from torch.nn import functional
from torchnet import statistics

AVERAGING = 0.999
REDUCED = (2, 2, 3)  # by how much images are reduced for the coarse comparison: one at random


@torch.no_grad()
def paint(student: Student, content: Tensor, style: Tensor, alpha: float) -> Tensor:
    """Contents in one style, with the same noise every time."""
    levels = student.levels(content)
    look = statistics(student.encoder(style))
    share = torch.full((1, 1, 1, 1), alpha, device=content.device)
    features = mixed(levels[-1].float(), statistics(levels[-1]), look, share)
    generator = torch.Generator(device=content.device).manual_seed(0)
    return student.decode(features, levels, share, generator)


@torch.no_grad()
def validate(student: Student, atlas: Atlas, few: bool) -> dict[str, float]:
    """Scores on held-out photographs, scenes and paintings."""
    found = {}
    cut = (slice(0, 2), slice(None), slice(0, 96), slice(0, 96)) if few else ()
    style = atlas.held(HELD_PAINTING)[cut]
    for name, group in (("photo", HELD_PHOTO), ("scene", HELD_SCENE)):
        content = atlas.held(group)[cut]
        again = paint(student, content, style[:1], 0.0).clamp(0, 1)
        psnr = -10 * torch.log10((again - content).square().mean((1, 2, 3)))
        left, pattern = [], []
        for k in range(len(style)):
            output = paint(student, content, style[k : k + 1], 1.0)
            pair = style[k : k + 1].expand(len(content), -1, -1, -1)
            left.append(distance_left(student, output, content, pair))
            pattern.append(lattice(output, content).sqrt())
        found |= {
            f"{name}_psnr": psnr.median().item(),
            f"{name}_left": torch.cat(left).median().item(),
            f"{name}_lattice": 255 * torch.stack(pattern).mean().item(),
        }
    return {key: round(value, 4) for key, value in found.items()}


@torch.no_grad()
def sheet(student: Student, atlas: Atlas, few: bool) -> PIL.Image.Image:
    """Held-out photographs in the style of the held-out paintings, of a trained one and of a drawing."""
    content = atlas.held(HELD_PHOTO)[:2, :, :96, :96] if few else atlas.held(HELD_PHOTO)[:6]
    styles = [atlas.held(HELD_PAINTING)[k : k + 1] for k in range(3)]
    styles += [atlas.held(PAINTING)[7:8], atlas.held(PROCEDURAL)[5:6]]
    shown = [(style, 1.0) for style in styles[: 2 if few else None]]
    shown.insert(1, (styles[0], 0.5))
    rows = [content, *(paint(student, content, style, alpha) for style, alpha in shown)]
    rows = [torch.cat(tuple(row), 2) for row in rows]
    whole = (torch.cat(rows, 1).float().clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()
    return PIL.Image.fromarray(whole)


def rate_at(warmth: float, progress: float, highest: float) -> float:
    """The learning rate: warm-up, then half a cosine."""
    return highest * min(warmth, 1.0) * (0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * progress)))


def save(student: Student, path: Path) -> None:
    temporary = path.with_name("." + path.name)
    with temporary.open("wb") as file:
        np.savez(file, **student.weights())
    temporary.replace(path)


def draw_alpha(count: int, generator: torch.Generator) -> Tensor:
    """α: 1, or two times in five a random number from 0 to 1."""
    draw = torch.rand(2, count, 1, 1, 1, generator=generator)
    return torch.where(draw[0] < 0.4, draw[1], 1.0)


def _weights(given: list[str]) -> dict[str, float]:
    return {name: float(value) for name, value in (text.split("=") for text in given)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True, help="folder of wct16x_4SE.pth")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--begin", type=Path, help="weights to continue from")
    parser.add_argument("--until", type=float, help="stop at this time (seconds since 1970)")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--crop", type=int, default=320, help="pixels per side, a multiple of 8")
    parser.add_argument("--rate", type=float, default=8e-4)
    parser.add_argument("--warm-up", type=int, default=300, help="steps")
    parser.add_argument(
        "--balance", nargs="*", default=[], metavar="TERM=WEIGHT", help="the weight of a term"
    )
    parser.add_argument("--painted", type=float, default=0.67, help="share of a batch that is painted")
    parser.add_argument("--name", default="style", help="name of the files")
    parser.add_argument("--report-every", type=float, default=60)
    options = parser.parse_args()
    begun = time.time()
    seconds = options.until - begun if options.until else options.seconds
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    name, balance = options.name, replace(Balance(), **_weights(options.balance))
    atlas = Atlas(options.data, device, seed=int(options.begin is not None))
    student = Student(read_encoder(options.encoder))
    if options.begin:
        student.load(options.begin)
    student = student.to(device, memory_format=torch.channels_last)
    critic = Critic().to(device, memory_format=torch.channels_last) if balance.critic else None
    average = copy.deepcopy(student).eval().requires_grad_(False)
    size = (options.crop, options.crop)
    units = level_units(student, atlas.styles(32, size))
    learned = [p for p in student.decoder.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=options.rate, betas=(0.9, 0.99), weight_decay=1e-4)
    if critic is not None:
        rival = torch.optim.Adam(critic.parameters(), lr=4e-4, betas=(0.5, 0.99))
    log: dict[str, object] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "torch": torch.__version__,
        "batch": options.batch, "crop": options.crop, "rate": options.rate, "seconds": round(seconds),
        "begin": options.begin.name if options.begin else "scratch",
        "balance": asdict(balance), "painted": options.painted,
        "images": {int(g): len(images) for g, images in atlas.groups.items()}, "curve": [],
    }  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    step, reported, sums, counted = 0, 0.0, {}, 0
    generator = atlas.generator

    def report() -> None:
        nonlocal sums, counted
        row = {"step": step, "seconds": round(time.time() - begun, 1)}
        row |= {k: round(v.item() / max(counted, 1), 5) for k, v in sums.items()}
        row |= validate(average, atlas, few=device == "cpu")
        log["curve"].append(row)
        sums, counted = {}, 0
        print(name, json.dumps(row), flush=True)
        save(average, options.out / f"{name}.npz")
        (options.out / f"{name}.json").write_text(json.dumps(log, indent=1))
        sheet(average, atlas, few=device == "cpu").save(options.out / f"{name}.jpg", quality=90)

    while (elapsed := time.time() - begun) < seconds:
        for group in optimizer.param_groups:
            group["lr"] = rate_at((step + 1) / options.warm_up, elapsed / seconds, options.rate)
        painted = round(options.batch * options.painted)
        content, style = atlas.contents(options.batch, size), atlas.styles(painted, size)
        reduced = REDUCED[int(torch.randint(len(REDUCED), (1,), generator=generator))]
        content, style = (x.contiguous(memory_format=torch.channels_last) for x in (content, style))
        alpha = draw_alpha(painted, generator).to(device, non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16) if device == "cuda" else nullcontext():
            terms, shown, look = losses(student, units, content, style, alpha, reduced, balance, critic)
        optimizer.zero_grad(set_to_none=True)
        torch.stack(list(terms.values())).sum().backward()
        norm = nn.utils.clip_grad_norm_(learned, 20.0)
        if step % 50 == 0 and not torch.isfinite(norm):  # checking waits for the device, so rarely
            raise SystemExit(f"{name}: diverged at step {step}")
        optimizer.step()
        if critic is not None:
            with torch.autocast("cuda", torch.bfloat16) if device == "cuda" else nullcontext():
                full = (alpha > 0.8).float()
                genuine = critic(style, look).float()
                false = critic(shown.detach().clamp(0, 1), look).float()
            doubt = functional.relu(1 - genuine) * full + functional.relu(1 + false) * full
            doubt = doubt.mean((1, 2, 3)).sum() / (full.sum() + 1)
            rival.zero_grad(set_to_none=True)
            doubt.backward()
            rival.step()
            terms["doubt"] = doubt
        step, counted = step + 1, counted + 1
        keep = min(AVERAGING, step / (step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(
                list(average.decoder.parameters()), list(student.decoder.parameters()), 1 - keep
            )
        for key, value in terms.items():
            sums[key] = sums.get(key, 0) + value.detach()
        if elapsed - reported >= options.report_every:
            reported = elapsed
            report()
    report()


if __name__ == "__main__":
    main()
