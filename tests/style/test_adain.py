"""AdaIN: the formula, the graphs against torch, any size, other people's weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.errors import InvalidOption, ModelError, UnknownName
from stormproof.core.imagefile import read_image
from stormproof.core.randomness import Draw
from stormproof.corruptions import apply
from stormproof.datasets import read_dataset
from stormproof.style.adain import (
    AdaIN,
    Statistics,
    adain,
    draw_noise,
    to_image,
    to_planes,
    whole_cells,
)
from stormproof.style.layers import (
    BUILTIN_DECODER,
    BUILTIN_ENCODER,
    DISTILLED_DECODER,
    DISTILLED_ENCODER,
    NEIGHBOUR,
    NOISE_CHANNELS,
    VGG_DECODER,
    VGG_ENCODER,
    Layer,
    convolutions,
    level_names,
    weight_shapes,
)
from stormproof.style.networks import (
    adain_from,
    folder,
    open_adain,
    open_built_in,
    open_network,
    read_weights,
)

torch = pytest.importorskip("torch")
from training.style.torchnet import TorchNetwork  # noqa: E402


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Smooth random colours with edges in them."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), np.uint8)
    return np.kron(coarse, np.ones((8, 8, 1), np.uint8))[:height, :width]


def random_weights(layers: tuple[Layer, ...], seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in weight_shapes(layers).items():
        fan = max(int(np.prod(shape[1:])), 1)
        found[name] = (rng.standard_normal(shape) * np.sqrt(2 / fan)).astype(np.float32)
        if name.endswith("bias"):
            found[name] *= 0.05
    return found


def test_features_take_the_styles_mean_and_deviation() -> None:
    rng = np.random.default_rng(0)
    content = rng.normal(3, 5, (16, 9, 11)).astype(np.float32)
    style = Statistics.of(rng.normal(-1, 2, (16, 30, 7)).astype(np.float32))
    after = Statistics.of(adain(content, Statistics.of(content), style))
    np.testing.assert_allclose(after.mean, style.mean, atol=1e-4)
    np.testing.assert_allclose(after.deviation, style.deviation, atol=1e-4)


def test_the_networks_own_features_take_the_styles_statistics() -> None:
    network = open_network()
    assert isinstance(network, AdaIN)
    content, style = network.encode_content(photo(64, 96)), network.encode_style(photo(80, 80, 1))
    painted = adain(content.features, content.own, style)
    flat = painted.reshape(len(painted), -1).astype(np.float64)
    # In units of the largest statistics: a channel may be thousands of units high, floats have seven digits.
    np.testing.assert_allclose(flat.mean(1), style.mean, rtol=1e-5, atol=1e-4)
    # √(variance + ε) in the denominator shrinks faint channels a little, exactly so.
    shrunk = 1 - 1e-5 / np.square(content.own.deviation.astype(np.float64))
    faint = np.sqrt(np.maximum(shrunk, 0))
    np.testing.assert_allclose(flat.std(1, ddof=1), style.deviation * faint, rtol=1e-4, atol=1e-4)


def test_alpha_blends_features_linearly() -> None:
    rng = np.random.default_rng(1)
    content = rng.normal(0, 1, (4, 5, 6)).astype(np.float32)
    own, style = Statistics.of(content), Statistics.of(rng.normal(2, 3, (4, 8, 8)).astype(np.float32))
    full = adain(content, own, style)
    np.testing.assert_allclose(adain(content, own, style, 0.3), 0.7 * content + 0.3 * full, atol=1e-5)
    np.testing.assert_array_equal(adain(content, own, style, 0.0), content)


def test_alpha_zero_is_plain_encoding_and_decoding() -> None:
    network = open_network()
    assert isinstance(network, AdaIN)
    image = photo(48, 64)
    features, levels = network.encoder(to_planes(image))
    levels["noise"] = np.ones((1, NOISE_CHANNELS, 6, 8), np.float32)  # of no effect at α = 0
    plain = network.decoder(features, levels, 0.0)[0]
    content, style = network.encode_content(image), network.encode_style(photo(40, 40, 2))
    np.testing.assert_array_equal(network.paint(content, style, 0.0), to_image(plain, (48, 64)))


def test_little_of_the_contents_detail_is_left_at_alpha_one() -> None:
    network = open_network()
    assert isinstance(network, AdaIN)
    content, style = network.encode_content(photo(48, 64)), network.encode_style(photo(40, 40, 2))
    blank = {name: np.zeros_like(level) for name, level in content.levels.items()}
    blank["noise"] = content.levels["noise"]
    without = replace(content, levels=blank)

    def detail(alpha: float) -> float:
        shown, blurred = (network.paint(one, style, alpha).astype(float) for one in (content, without))
        return float(np.abs(shown - blurred).mean())

    assert 0 < detail(1.0) < 0.6 * detail(0.5) < 0.6 * detail(0.0)


def test_noise_is_normal_smooth_and_specific_to_the_image() -> None:
    noise = draw_noise(Draw.keyed(0, "a", "noise"), (60, 80))
    assert noise.shape == (1, NOISE_CHANNELS, 60, 80)
    assert noise.dtype == np.float32
    assert abs(noise.mean()) < 0.02
    assert noise.std() == pytest.approx(1, abs=0.02)
    beside = np.mean(noise[..., 1:] * noise[..., :-1])
    assert beside == pytest.approx(2 * NEIGHBOUR / (1 + 2 * NEIGHBOUR**2), abs=0.03)
    assert abs(np.mean(noise[..., 3:] * noise[..., :-3])) < 0.03
    network = open_network()
    one, same, other = (network.encode_content(photo(32, 40, seed)).levels["noise"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_levels_of_any_size_fit_together_by_reflection() -> None:
    image = photo(45, 61)
    padded = whole_cells(image)
    assert padded.shape == (48, 64, 3)
    np.testing.assert_array_equal(padded[:45, :61], image)
    np.testing.assert_array_equal(padded[45, :61], image[43])
    assert whole_cells(padded) is padded


@pytest.mark.parametrize("size", [(1, 1), (3, 50), (8, 8), (9, 17), (16, 16), (47, 64), (65, 33)])
def test_output_has_exactly_the_contents_size(size: tuple[int, int]) -> None:
    network = open_network()
    style = network.encode_style(photo(30, 30, 3))
    assert network.paint(network.encode_content(photo(*size)), style, 1.0).shape == (*size, 3)


def plain_vgg(encoder: dict[str, np.ndarray], decoder: dict[str, np.ndarray]) -> tuple:
    """The published network as torch's own modules, written from its description: 31 and 29 modules."""
    nn = torch.nn

    def conv(i: int, o: int, k: int = 3) -> list:
        return [nn.ReflectionPad2d(1), nn.Conv2d(i, o, k)] if k == 3 else [nn.Conv2d(i, o, k)]

    down: list = conv(3, 3, 1)
    for i, o, pooled in (
        (3, 64, 0), (64, 64, 1), (64, 128, 0), (128, 128, 1), (128, 256, 0), (256, 256, 0), (256, 256, 0),
        (256, 256, 1), (256, 512, 0),
    ):  # fmt: skip
        down += [*conv(i, o), nn.ReLU(), *([nn.MaxPool2d(2, 2, ceil_mode=True)] if pooled else [])]
    up: list = []
    for i, o, doubled in (
        (512, 256, 1), (256, 256, 0), (256, 256, 0), (256, 256, 0), (256, 128, 1), (128, 128, 0),
        (128, 64, 1), (64, 64, 0), (64, 3, 0),
    ):  # fmt: skip
        up += [*conv(i, o), nn.ReLU(), *([nn.Upsample(scale_factor=2)] if doubled else [])]
    first, second = nn.Sequential(*down), nn.Sequential(*up[:-1])
    assert (len(first), len(second)) == (31, 29)
    first.load_state_dict({k: torch.from_numpy(v) for k, v in encoder.items()})
    second.load_state_dict({k: torch.from_numpy(v) for k, v in decoder.items()})
    return first, second


def test_original_vgg_files_against_a_plain_torch_network(tmp_path: Path) -> None:
    weights = random_weights(VGG_ENCODER, 0), random_weights(VGG_DECODER, 1)
    first, second = plain_vgg(*weights)
    torch.save(first.state_dict(), tmp_path / "vgg_normalised.pth")
    torch.save(second.state_dict(), tmp_path / "decoder.pth")
    opened = open_adain(str(tmp_path / "vgg_normalised.pth"), decoder=str(tmp_path / "decoder.pth"))
    assert opened.name == "VGG-19"
    image, style = photo(37, 50), photo(40, 44, 1)
    with torch.no_grad():
        features = first(torch.from_numpy(to_planes(image)))
        wanted = first(torch.from_numpy(to_planes(style)))
        mean, deviation = (
            features.mean((2, 3), keepdim=True),
            (features.var((2, 3), keepdim=True) + 1e-5).sqrt(),
        )
        target = (wanted.var((2, 3), keepdim=True) + 1e-5).sqrt() * (features - mean) / deviation
        target = target + wanted.mean((2, 3), keepdim=True)
        expected = second(0.4 * features + 0.6 * target)[0].numpy()
    content = opened.encode_content(image)
    np.testing.assert_allclose(content.features, features[0].numpy(), rtol=1e-3, atol=1e-3)
    own = Statistics.of(opened.encoder(to_planes(style))[0][0])
    got = opened.decoder(adain(content.features, content.own, own, 0.6)[None], content.levels, 0.6)[0]
    assert got.shape == (3, 40, 56)  # 8·⌈H/8⌉ × 8·⌈W/8⌉
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_original_vgg_files_by_one_command_and_as_a_condition(tmp_path: Path) -> None:
    for file, layers in (("vgg_normalised", VGG_ENCODER), ("decoder", VGG_DECODER)):
        state = {name: torch.from_numpy(value) for name, value in random_weights(layers, 0).items()}
        torch.save(state, tmp_path / f"{file}.pth")
    network = f"adain:{tmp_path / 'vgg_normalised.pth'},decoder={tmp_path / 'decoder.pth'}"
    asked = ["--network", network, "--out", str(tmp_path / "out"), "-j", "1"]
    said = CliRunner().invoke(app, ["stylize", "world:val,count=1,size=64x48", *asked])
    assert said.exit_code == 0, said.output
    (written,) = (tmp_path / "out").rglob("*.png")
    sample = read_dataset("world:val,count=1,size=64x48")[0]
    painted = apply(sample, f'style[alpha=1,network="{network}"]', seed=0)
    np.testing.assert_array_equal(read_image(written), painted.image)
    assert not np.array_equal(painted.image, apply(sample, "style[alpha=1]", seed=0).image)


def in_torch(graphs: AdaIN, encoder: tuple, decoder: tuple) -> AdaIN:
    """The same network, its parts run by torch."""
    first, second = (TorchNetwork(*part).eval() for part in (encoder, decoder))
    taps = level_names(encoder[0], graphs.joined)

    def encode(image: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        names = (*taps, convolutions(encoder[0])[-1].name)
        *levels, features = (x.detach().numpy() for x in first.taps(torch.from_numpy(image), names))
        return features, dict(zip(taps, levels, strict=True))

    def decode(features: np.ndarray, levels: dict[str, np.ndarray], strength: float) -> np.ndarray:
        others = {name: torch.from_numpy(level) for name, level in levels.items()}
        return second(torch.from_numpy(features), others, strength).detach().numpy()

    return replace(graphs, encoder=encode, decoder=decode)


@pytest.mark.parametrize(
    "pair",
    [(DISTILLED_ENCODER, DISTILLED_DECODER), (BUILTIN_ENCODER, BUILTIN_DECODER)],
    ids=["distilled", "ours"],
)
def test_onnx_and_torch_agree_within_a_grey_level(pair: tuple) -> None:
    encoder, decoder = (random_weights(layers, k) for k, layers in enumerate(pair))
    graphs = adain_from("graphs", (pair[0], encoder), (pair[1], decoder))
    modules = in_torch(graphs, (pair[0], encoder), (pair[1], decoder))
    image, style = photo(50, 67), photo(33, 60, 1)
    painted = [
        n.paint(n.encode_content(image), n.encode_style(style), 0.8).astype(int) for n in (graphs, modules)
    ]
    assert np.abs(painted[0] - painted[1]).max() <= 1


def test_shipped_graphs_agree_with_torch() -> None:
    onnx = pytest.importorskip("onnx")
    weights = []
    for part in ("encoder", "decoder"):
        model = onnx.load(folder() / f"{part}.onnx")
        arrays = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
        weights.append({k.removesuffix(".half"): v for k, v in arrays.items() if k.endswith(".half")})
    modules = in_torch(open_built_in(), (BUILTIN_ENCODER, weights[0]), (BUILTIN_DECODER, weights[1]))
    image, style = photo(72, 90), photo(64, 64, 1)
    painted = [
        n.paint(n.encode_content(image), n.encode_style(style), 1.0).astype(int)
        for n in (open_network(), modules)
    ]
    assert np.abs(painted[0] - painted[1]).max() <= 1
    assert sum(file.stat().st_size for file in folder().iterdir()) <= 2.5e6


def test_the_distilled_pair_gives_what_its_formulas_say(shared: Path) -> None:
    """Reflection padding, ReLU after all but colours, pools after 12, 22 and 34, nearest up-sampling."""
    files = [str(shared / f"models/wct16x_4S{part}.pth") for part in "ED"]
    opened = open_adain(files[0], decoder=files[1])
    assert opened.name == "distilled VGG-19"
    down, up = ({k: torch.from_numpy(v) for k, v in read_weights(file).items()} for file in files)
    f = torch.nn.functional

    def conv(weights: dict, x: object, name: str) -> object:
        return f.conv2d(
            f.pad(x, (1, 1, 1, 1), mode="reflect"), weights[f"{name}.weight"], weights[f"{name}.bias"]
        )

    image = photo(48, 64)
    x = f.conv2d(torch.from_numpy(to_planes(image)), down["conv0.weight"], down["conv0.bias"])
    for name in ("conv11", "conv12", "conv21", "conv22", "conv31", "conv32", "conv33", "conv34", "conv41"):
        x = f.relu(conv(down, x, name))
        if name in ("conv12", "conv22", "conv34"):
            x = f.max_pool2d(x, 2)
    np.testing.assert_allclose(opened.encode_content(image).features, x[0].numpy(), rtol=1e-3, atol=1e-3)
    for name in ("conv41", "conv34", "conv33", "conv32", "conv31", "conv22", "conv21", "conv12", "conv11"):
        x = conv(up, x, name)
        if name != "conv11":
            x = f.relu(x)
        if name in ("conv41", "conv31", "conv21"):
            x = f.interpolate(x, scale_factor=2)
    painted = opened.paint(opened.encode_content(image), Statistics.of(np.ones((128, 2, 2), np.float32)), 0.0)
    assert np.abs(painted.astype(int) - to_image(x[0].numpy(), (48, 64))).max() <= 1


def test_stored_statistics_fit_one_network_only(tmp_path: Path) -> None:
    network = open_network()
    style = network.encode_style(photo(40, 60))
    style.save(tmp_path / "style.npz")
    again = network.load_style(tmp_path / "style.npz")
    np.testing.assert_array_equal(again.mean, style.mean)
    Statistics(np.zeros(3, np.float32), np.ones(3, np.float32)).save(tmp_path / "other.npz")
    with pytest.raises(InvalidOption, match="3 channels, built-in has 128"):
        network.load_style(tmp_path / "other.npz")
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    with pytest.raises(InvalidOption, match="save statistics of a style"):
        network.load_style(tmp_path / "broken.npz")


def test_names_files_that_are_no_weights(tmp_path: Path) -> None:
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(ModelError, match=r"text\.pth"):
        open_adain(str(tmp_path / "text.pth"), decoder=str(tmp_path / "text.pth"))
    torch.save({"a": torch.zeros(2)}, tmp_path / "other.pth")
    with pytest.raises(ModelError, match="fit no known encoder"):
        open_adain(str(tmp_path / "other.pth"), decoder=str(tmp_path / "other.pth"))
    with pytest.raises(InvalidOption, match="no such weights file"):
        open_adain(str(tmp_path / "none.pth"), decoder=str(tmp_path / "other.pth"))


def test_magenta_has_the_same_interface(shared: Path) -> None:
    models = shared / "models"
    text = f"magenta:{models}/magenta_predict_256_w16.onnx,transform={models}/magenta_transform_384.onnx"
    network = open_network(text)
    image = photo(70, 90)
    content, style = network.encode_content(image), network.encode_style(photo(60, 60, 4))
    painted = network.paint(content, style, 1.0)
    assert painted.shape == image.shape
    assert np.abs(painted.astype(int) - network.paint(content, style, 0.0)).mean() > 3


def test_an_unknown_network_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="Networks: built-in, adain, magenta"):
        open_network("vgg")
