"""Trains the shipped style networks: `python train.py --data data.npz --teacher DIR --out DIR --seconds 330`.

The encoder learns features from which the distilled teacher's (wct16x_4SE) can be read at relu1_1 … relu4_1;
the decoder learns to paint the style: content and style losses of huang2017 as the teacher sees them, and
plain reconstruction at α = 0. Half of a batch is stylized, half reconstructed.
Needs torch and NumPy only. Writes `style_weights.npz` (float16; weights averaged over steps) about once a
minute, and `style_log.json`.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from data import Atlas
from losses import distance_left, level_units, losses
from student import Student, load_teacher, tapped
from torch import Tensor, nn

from stormproof.style.layers import BUILTIN_ENCODER, DISTILLED_ENCODER, Conv
from stormproof.style.torchnet import Network, adain, statistics

# (share of the time, highest learning rate, weight of the style loss). The second phase presses the style
# harder; the weights at the end of the first are kept too, to choose from.
PHASES = ((0.55, 1.5e-3, 12.0), (0.45, 8e-4, 25.0))
RAMP = (0.06, 0.18)  # the style loss sets in between these shares of the time: first learn to draw at all
AVERAGING = 0.998


@torch.no_grad()
def validate(student: Student, teacher: Network, atlas: Atlas) -> dict[str, float]:
    """On photographs and paintings that are not trained on."""
    content, style = atlas.validation()
    if content.device.type == "cpu":  # a dry run
        content, style = content[:2, :, :128, :128], style[:2, :, :128, :128]
    features, wanted = student.encoder(content), student.encoder(style)
    again = student.decoder(features).clamp(0, 1)
    psnr = -10 * torch.log10((again - content).square().mean((1, 2, 3)))
    left = []
    for k in range(len(style)):
        pair = style[k : k + 1].expand(len(content), -1, -1, -1)
        output = student.decoder(adain(features, statistics(wanted[k : k + 1])))
        left.append(distance_left(teacher, output, content, pair))
    return {"psnr": psnr.median().item(), "distance_left": torch.cat(left).median().item()}


def phase_at(progress: float) -> tuple[int, float, float]:
    """(phase, learning rate, style weight): warm-up, then half a cosine, in each phase."""
    start = 0.0
    for k, (share, rate, weight) in enumerate(PHASES):
        if progress < start + share or k == len(PHASES) - 1:
            t = min((progress - start) / share, 1.0)
            return k, rate * min(t / 0.04, 1.0) * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * t))), weight
        start += share
    raise AssertionError


@torch.no_grad()
def dead_channels(student: Student, images: Tensor) -> int:
    """Channels that fire for none of the images."""
    x, dead = images, 0
    for network in (student.encoder, student.decoder):
        for layer in network.layers:
            x = network.step(layer, x)
            if isinstance(layer, Conv) and layer.relu:
                dead += int((x.amax((0, 2, 3)) <= 0).sum())
    return dead


def _values(network: nn.Module) -> list[Tensor]:
    """Weights and the norms' statistics."""
    return [value for value in network.state_dict().values() if value.is_floating_point()]


def save(student: Student, path: Path) -> None:
    temporary = path.with_name("." + path.name)
    with temporary.open("wb") as file:
        np.savez_compressed(file, **student.weights())
    temporary.replace(path)


def throughput(student: Student, device: str) -> float:
    """Images a second through encoder, AdaIN and decoder: batches of 16 at 512×512, half precision."""
    fast = copy.deepcopy(student).half()
    images = torch.rand(16, 3, 512, 512, device=device, dtype=torch.half)
    with torch.no_grad():
        style = statistics(fast.encoder(images[:1]))
        for k in range(25):
            if k == 5:
                torch.cuda.synchronize()
                start = time.perf_counter()
            fast.decoder(adain(fast.encoder(images), style).half())
        torch.cuda.synchronize()
    return 20 * 16 / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=330)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--crop", type=int, default=256)
    parser.add_argument("--save-every", type=float, default=50)
    parser.add_argument("--turn", type=float, nargs=2, default=(0.0, 1.0), help="shares of the schedule")
    parser.add_argument("--state", type=Path, help="where a turn leaves what the next one takes up")
    options = parser.parse_args()
    begun = time.perf_counter() - (time.time() - float(os.environ.get("STARTED", time.time())))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    atlas = Atlas(options.data, device, options.crop)
    teacher, student = load_teacher(options.teacher).to(device), Student().to(device)
    # What of the student's features the teacher's can be read from; thrown away at the end.
    heads = nn.ModuleList(
        nn.Conv2d(mine.outputs, his.outputs, 1)
        for mine, his in zip(tapped(BUILTIN_ENCODER), tapped(DISTILLED_ENCODER), strict=True)
    ).to(device)
    learned = [*student.parameters(), *heads.parameters()]
    units = level_units(teacher, atlas)
    student, heads, teacher = (
        part.to(memory_format=torch.channels_last) for part in (student, heads, teacher)
    )
    average = copy.deepcopy(student).eval().requires_grad_(False)
    optimizer = torch.optim.Adam(learned, lr=1e-3, betas=(0.9, 0.99), fused=device == "cuda")
    log: dict[str, object] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "torch": torch.__version__,
        "batch": options.batch, "crop": options.crop, "phases": PHASES, "curve": [],
    }  # fmt: skip
    curve: list[dict[str, float]] = log["curve"]  # type: ignore[assignment]
    options.out.mkdir(parents=True, exist_ok=True)
    step, saved, sums, counted, skipped = 0, 0.0, {}, 0, 0
    phase = phase_at(options.turn[0])[0]
    modules = (student, heads, average, optimizer)
    if options.state and options.state.exists():
        kept = torch.load(options.state, weights_only=True)
        for module, values in zip(modules, kept["modules"], strict=True):
            module.load_state_dict(values)
        step, log["curve"] = kept["step"], json.loads((options.out / "style_log.json").read_text())["curve"]
        curve = log["curve"]  # type: ignore[assignment]
        atlas.generator.manual_seed(step)

    def write_log() -> None:
        (options.out / ".style_log").write_text(json.dumps(log, indent=1))
        (options.out / ".style_log").replace(options.out / "style_log.json")

    def report() -> None:
        nonlocal sums, counted
        row = {
            "step": step,
            "seconds": round(time.perf_counter() - begun, 1),
            "phase": phase,
            "skipped": skipped,
        }
        row |= {k: round(v.item() / max(counted, 1), 5) for k, v in sums.items()}
        row["dead"] = dead_channels(average, atlas.batch(8)[0])
        row |= {k: round(v, 4) for k, v in validate(average, teacher, atlas).items()}
        curve.append(row)
        sums, counted = {}, 0
        print(json.dumps(row), flush=True)
        write_log()

    while True:
        elapsed = time.perf_counter() - begun
        if elapsed >= options.seconds:
            break
        progress = options.turn[0] + (options.turn[1] - options.turn[0]) * elapsed / options.seconds
        now, rate, weight = phase_at(progress)
        weight *= min(max((progress - RAMP[0]) / (RAMP[1] - RAMP[0]), 0.0), 1.0)
        if now != phase:
            report()
            save(average, options.out / "style_weights_phase1.npz")
            phase = now
        for group in optimizer.param_groups:
            group["lr"] = rate
        content, style = atlas.batch(options.batch)
        with torch.autocast("cuda", torch.bfloat16) if device == "cuda" else nullcontext():
            terms = losses(student, heads, teacher, units, content, style, weight)
        total = torch.stack(list(terms.values())).sum()
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        if not torch.isfinite(nn.utils.clip_grad_norm_(learned, 50.0)):
            skipped += 1
            continue
        optimizer.step()
        step, counted = step + 1, counted + 1
        keep = min(AVERAGING, step / (step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(_values(average), _values(student), 1 - keep)
        for name, value in terms.items():
            sums[name] = sums.get(name, 0) + value.detach()
        if elapsed - saved >= options.save_every:
            saved = elapsed
            report()
            save(average, options.out / "style_weights.npz")
    report()
    save(average, options.out / "style_weights.npz")
    if options.state:
        torch.save({"modules": [module.state_dict() for module in modules], "step": step}, options.state)
    if device == "cuda":
        log["images_per_second_512_batch16"] = round(throughput(average, device), 1)
        write_log()


if __name__ == "__main__":
    main()
