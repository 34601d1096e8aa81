"""Trains the built-in style networks: `python train.py --data data.npz --pair DIR --out DIR`.

Half of a batch is reconstructed (α = 0), half painted: at α = 1, or two times in five at a random α. The
networks begin as the distilled pair (wct16x_4SE, 4SD), and its encoder judges what they paint.
Needs torch, NumPy and Pillow only. Writes the weights (float16, averaged over steps) and the log as it goes.
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
import torch
from data import HELD_PAINTING, HELD_PHOTO, HELD_SCENE, Atlas
from losses import CELL, Balance, distance_left, lattice, level_units, losses, mixed, moved
from student import Student, judge, read_pair
from torch import Tensor, nn

from stormproof.style.torchnet import Network, statistics

AVERAGING = 0.999
# Most crops are multiples of eight pixels, the size of a cell; some are not, as most images.
MOVE = (3, 5)  # pixels by which validation moves a content against the cells
SIZES, SIZE_SHARES = ((256, 256), (251, 246), (244, 253)), (0.7, 0.15, 0.15)


@torch.no_grad()
def validate(student: Student, judge: Network, atlas: Atlas, few: bool) -> dict[str, float]:
    """Scores on held-out photographs, scenes and paintings."""
    found = {}
    cut = (slice(0, 2), slice(None), slice(0, 96), slice(0, 96)) if few else ()
    style = atlas.held(HELD_PAINTING)[cut]
    wanted = statistics(student.encoder(style))
    for name, group in (("photo", HELD_PHOTO), ("scene", HELD_SCENE)):
        content = atlas.held(group)[cut]
        features = student.encoder(content)
        own = statistics(features)
        again = student.decoder(features).clamp(0, 1)
        psnr = -10 * torch.log10((again - content).square().mean((1, 2, 3)))
        elsewhere = student.encoder(content[:, :, MOVE[0] :, MOVE[1] :])
        full = torch.ones(1, 1, 1, 1, device=style.device)
        left, pattern, weave = [], [], []
        for k in range(len(style)):
            look = tuple(part[k : k + 1] for part in wanted)
            output = student.decoder(mixed(features, own, look, full))
            other = student.decoder(mixed(elsewhere, statistics(elsewhere), look, full))
            pair = style[k : k + 1].expand(len(content), -1, -1, -1)
            left.append(distance_left(judge, output, content, pair))
            pattern.append(lattice(output, content).sqrt())
            weave.append(moved(output, other, content, MOVE).sqrt())
        found |= {
            f"{name}_psnr": psnr.median().item(),
            f"{name}_left": torch.cat(left).median().item(),
            f"{name}_lattice": 255 * torch.stack(pattern).mean().item(),
            f"{name}_weave": 255 * torch.stack(weave).mean().item(),
        }
    return {key: round(value, 4) for key, value in found.items()}


def rate_at(warmth: float, progress: float, highest: float) -> float:
    """The learning rate: warm-up, then half a cosine."""
    return highest * min(warmth, 1.0) * (0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * progress)))


def save(student: Student, path: Path) -> None:
    temporary = path.with_name("." + path.name)
    with temporary.open("wb") as file:
        np.savez(file, **student.weights())
    temporary.replace(path)


def throughput(student: Student) -> float:
    """Images a second through encoder, AdaIN and decoder: batches of 16 at 512×512, half precision."""
    fast = copy.deepcopy(student).half()
    images = torch.rand(16, 3, 512, 512, device="cuda", dtype=torch.half)
    alpha = torch.ones(1, 1, 1, 1, device="cuda")
    with torch.no_grad():
        style = statistics(fast.encoder(images[:1]))
        for k in range(25):
            if k == 5:
                torch.cuda.synchronize()
                start = time.perf_counter()
            features = fast.encoder(images)
            fast.decoder(mixed(features, statistics(features), style, alpha).half())
        torch.cuda.synchronize()
    return 20 * 16 / (time.perf_counter() - start)


def draw_alpha(count: int, generator: torch.Generator) -> Tensor:
    """α: 1, or two times in five a random number from 0 to 1."""
    draw = torch.rand(2, count, 1, 1, 1, generator=generator)
    return torch.where(draw[0] < 0.4, draw[1], 1.0)


def draw_share(count: int, generator: torch.Generator) -> Tensor:
    """The share of another style: mostly 0."""
    draw = torch.rand(2, count, 1, 1, 1, generator=generator)
    return torch.where(draw[0] < 0.2, draw[1], 0.0)


def _weights(given: list[str]) -> dict[str, float]:
    return {name: float(value) for name, value in (text.split("=") for text in given)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--pair", type=Path, required=True, help="folder of wct16x_4SE.pth and wct16x_4SD.pth"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--begin", type=Path, help="weights to continue from")
    parser.add_argument("--until", type=float, help="stop at this time (seconds since 1970)")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=4e-4)
    parser.add_argument("--warm-up", type=int, default=400, help="steps")
    parser.add_argument(
        "--balance", nargs="*", default=[], metavar="TERM=WEIGHT", help="the weight of a term"
    )
    parser.add_argument("--painted", type=float, default=0.5, help="share of a batch that is painted")
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
    pair = read_pair(options.pair)
    student = Student(pair)
    if options.begin:
        student.load(options.begin)
    student, judging = (part.to(device, memory_format=torch.channels_last) for part in (student, judge(pair)))
    average = copy.deepcopy(student).eval().requires_grad_(False)
    units = level_units(judging, atlas.styles(32, SIZES[0]))
    learned = list(student.parameters())
    groups = [
        {"params": list(part.parameters()), "share": share}
        for part, share in ((student.decoder, 1.0), (student.encoder, 0.5))
    ]
    optimizer = torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.99), weight_decay=1e-4)
    log: dict[str, object] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "torch": torch.__version__,
        "batch": options.batch, "rate": options.rate, "seconds": round(seconds),
        "begin": options.begin.name if options.begin else "the distilled pair",
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
        row |= validate(average, judging, atlas, few=device == "cpu")
        log["curve"].append(row)
        sums, counted = {}, 0
        print(name, json.dumps(row), flush=True)
        save(average, options.out / f"{name}.npz")
        (options.out / f"{name}.json").write_text(json.dumps(log, indent=1))

    while (elapsed := time.time() - begun) < seconds:
        for group in optimizer.param_groups:
            group["lr"] = group["share"] * rate_at(
                (step + 1) / options.warm_up, elapsed / seconds, options.rate
            )
        size = SIZES[int(torch.multinomial(torch.tensor(SIZE_SHARES), 1, generator=generator))]
        painted = round(options.batch * options.painted)
        larger = (size[0] + CELL, size[1] + CELL)
        content, style = atlas.contents(options.batch, larger), atlas.styles(painted, size)
        shift = tuple(torch.randint(1, CELL, (2,), generator=generator).tolist())
        content, style = (x.contiguous(memory_format=torch.channels_last) for x in (content, style))
        alpha, share = (
            draw(painted, generator).to(device, non_blocking=True) for draw in (draw_alpha, draw_share)
        )
        with torch.autocast("cuda", torch.bfloat16) if device == "cuda" else nullcontext():
            terms = losses(student, judging, units, content, style, alpha, share, shift, balance)
        optimizer.zero_grad(set_to_none=True)
        torch.stack(list(terms.values())).sum().backward()
        norm = nn.utils.clip_grad_norm_(learned, 20.0)
        if step % 50 == 0 and not torch.isfinite(norm):  # checking waits for the device, so rarely
            raise SystemExit(f"{name}: diverged at step {step}")
        optimizer.step()
        step, counted = step + 1, counted + 1
        keep = min(AVERAGING, step / (step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(student.parameters()), 1 - keep)
        for key, value in terms.items():
            sums[key] = sums.get(key, 0) + value.detach()
        if elapsed - reported >= options.report_every:
            reported = elapsed
            report()
    report()
    if device == "cuda":
        log["images_per_second_512_batch16"] = round(throughput(average), 1)
        (options.out / f"{name}.json").write_text(json.dumps(log, indent=1))


if __name__ == "__main__":
    main()
