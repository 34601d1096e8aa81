"""Each decoder on tensors made by hand: one object is written the way its network would, and read back."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof.core.errors import ModelError
from stormproof.models import decoding
from stormproof.models.candidates import Candidates, Limits
from stormproof.models.decoders import DECODERS

SIZE = (64, 96)  # height, width of the input
BOX = np.array([20.0, 10.0, 60.0, 42.0])  # centre 40, 26; 40 wide, 32 high
CENTRE, SIDES = np.array([40.0, 26.0]), np.array([40.0, 32.0])
LABEL, CLASSES = 2, 4


def best(found: Candidates) -> tuple[np.ndarray, float, int]:
    """Box, score and label of the strongest candidate."""
    if found.labels is not None:
        row = int(found.scores.argmax())
        return found.boxes[row], float(found.scores[row]), int(found.labels[row])
    row, label = np.unravel_index(found.scores.argmax(), found.scores.shape)
    return found.boxes[row], float(found.scores[row, label]), int(label)


def assert_found(found: Candidates, score: float, *, box: np.ndarray = BOX, label: int = LABEL) -> None:
    where, strength, kind = best(found)
    assert where == pytest.approx(box, abs=1e-3)
    assert strength == pytest.approx(score, abs=1e-5)
    assert kind == label


def scores(rows: int, at: int, value: float) -> np.ndarray:
    table = np.zeros((rows, CLASSES), np.float32)
    table[at, LABEL] = value
    return table


def test_yolox_decodes_the_grid() -> None:
    cells, steps = decoding.grids(SIZE, (8, 16, 32))
    at = 100  # on stride 16
    assert steps[at, 0] == 16
    rows = np.full((len(cells), 5 + CLASSES), -9.0, np.float32)
    rows[:, 4:] = 0
    rows[at, :2], rows[at, 2:4] = CENTRE / 16 - cells[at], np.log(SIDES / 16)
    rows[at, 4], rows[at, 5 + LABEL] = 0.9, 0.8
    assert_found(decoding.yolox([rows], SIZE), 0.72)


def test_yolov5_multiplies_objectness() -> None:
    rows = np.zeros((30, 5 + CLASSES), np.float32)
    rows[7] = [*CENTRE, *SIDES, 0.5, 0, 0, 0.8, 0]
    assert_found(decoding.yolov5([rows], SIZE), 0.4)


def test_reads_the_transposed_table_of_yolov8() -> None:
    rows = np.zeros((30, 4 + CLASSES), np.float32)
    rows[7] = [*CENTRE, *SIDES, 0, 0, 0.8, 0]
    assert_found(decoding.yolov8([rows.T], SIZE), 0.8)


@pytest.mark.parametrize(("decoder", "objectness"), [(decoding.yolov5, [1.0]), (decoding.yolov8, [])])
def test_mask_coefficients_follow_the_classes(decoder, objectness) -> None:
    prototypes = np.ones((3, 16, 24), np.float32)
    rows = np.zeros((5, 4 + len(objectness) + CLASSES + 3), np.float32)
    rows[2] = [*CENTRE, *SIDES, *objectness, 0, 0, 0.8, 0, 1, 2, 3]
    table = rows.T if decoder is decoding.yolov8 else rows
    found = decoder([table, prototypes], SIZE)
    assert found.scores.shape == (5, CLASSES)
    assert found.coefficients is not None
    assert found.coefficients[2].tolist() == [1, 2, 3]


def test_key_points_follow_the_classes() -> None:
    rows = np.zeros((30, 4 + CLASSES + 6), np.float32)
    rows[7] = [*CENTRE, *SIDES, 0, 0, 0.8, 0, 30, 20, 0.9, 50, 40, 0.1]
    found = DECODERS["yolov8-pose"].function([rows.T], SIZE, points=(2, 3))
    assert_found(found, 0.8)
    assert found.data["points"][7] == pytest.approx(np.array([[30, 20, 0.9], [50, 40, 0.1]]))
    finished = np.zeros((9, 10), np.float32)
    finished[3] = [*BOX, 0.6, LABEL, 30, 20, 50, 40]
    found = DECODERS["yolov10-pose"].function([finished], SIZE, points=(2, 2))
    assert_found(found, 0.6)
    assert found.data["points"][3].tolist() == [[30, 20, 1], [50, 40, 1]]
    with pytest.raises(decoding.Unreadable, match="4 columns of points"):
        DECODERS["yolov10-pose"].function([finished], SIZE, points=(2, 3))


def test_angles_follow_the_classes() -> None:
    """A box of 40 × 32 that stands on end: the upright box around it is 32 × 40."""
    around = np.array([24.0, 6.0, 56.0, 46.0])
    rows = np.zeros((30, 4 + CLASSES + 1), np.float32)
    rows[7] = [*CENTRE, *SIDES, 0, 0, 0.8, 0, np.pi / 2]
    found = DECODERS["yolov8-obb"].function([rows.T], SIZE)
    assert_found(found, 0.8, box=around)
    assert found.data["corners"][7] == pytest.approx(
        np.array([[56, 6], [56, 46], [24, 46], [24, 6]]), abs=1e-4
    )
    finished = np.zeros((9, 7), np.float32)
    finished[3] = [*CENTRE, *SIDES, 0.6, LABEL, np.pi / 2]
    assert_found(DECODERS["yolov10-obb"].function([finished], SIZE), 0.6, box=around)


def test_yolov10_rows_need_no_suppression() -> None:
    rows = np.zeros((9, 6), np.float32)
    rows[3] = [*BOX, 0.6, LABEL]
    assert_found(decoding.yolov10([rows], SIZE), 0.6)
    assert_found(decoding.yolov10([rows * [0.25, 0.25, 0.25, 0.25, 1, 1]], SIZE, scale=4), 0.6)
    assert DECODERS["yolov10"].limits.iou is None


def test_postprocessed_reads_only_the_counted_rows() -> None:
    boxes = np.zeros((5, 4), np.float32)
    boxes[1] = [BOX[1] / 64, BOX[0] / 96, BOX[3] / 64, BOX[2] / 96]
    labels, strength = (
        np.array([0, LABEL, 1, 1, 1], np.float32),
        np.array([0.1, 0.7, 0.9, 0.9, 0.9], np.float32),
    )
    found = decoding.postprocessed([boxes, labels, strength, np.array([2.0])], SIZE)
    assert len(found.boxes) == 2
    assert_found(found, 0.7)


def test_ssd_reads_fractions_and_skips_the_background() -> None:
    boxes = np.zeros((6, 1, 4), np.float32)
    boxes[4, 0] = [BOX[1] / 64, BOX[0] / 96, BOX[3] / 64, BOX[2] / 96]
    assert_found(decoding.ssd([boxes, scores(6, 4, 0.7)], SIZE), 0.7)
    assert_found(decoding.ssd([boxes, scores(6, 4, 0.7)], SIZE, background=True), 0.7, label=LABEL - 1)
    logit = np.where(scores(6, 4, 1) > 0, 2.0, -20.0)
    assert_found(decoding.ssd([boxes, logit], SIZE, logits=True), 1 / (1 + np.exp(-2)))


def test_ssd_raw_decodes_offsets_from_anchors() -> None:
    grid = decoding.ssd_anchors(SIZE, 6, (0.2, 0.95))
    assert grid[:3] == pytest.approx(  # first cell of stride 16, of 6×4: small, wide, tall
        np.array(
            [[1 / 12, 1 / 8, 0.1, 0.1], [1 / 12, 1 / 8, 0.2828, 0.1414], [1 / 12, 1 / 8, 0.1414, 0.2828]]
        ),
        abs=1e-4,
    )
    assert grid[-1] == pytest.approx([0.5, 0.5, 0.95**0.5, 0.95**0.5])  # between the last scale and 1
    at = 40
    offsets = np.zeros((len(grid), 4), np.float32)
    offsets[at, [1, 0]] = 10 * (CENTRE / (96, 64) - grid[at, :2]) / grid[at, 2:]
    offsets[at, [3, 2]] = 5 * np.log(SIDES / (96, 64) / grid[at, 2:])
    logit = np.where(scores(len(grid), at, 1) > 0, 2.0, -20.0)
    assert_found(decoding.ssd_raw([offsets, logit], SIZE), 1 / (1 + np.exp(-2)))
    found = decoding.ssd_raw([offsets, scores(len(grid), at, 0.7)], SIZE, logits=False, background=True)
    assert_found(found, 0.7, label=LABEL - 1)
    with pytest.raises(ValueError, match=r"rows for .* anchors of 5 layers"):
        decoding.ssd_raw([offsets, logit], SIZE, layers=5)


def test_ssd_refuses_offsets_instead_of_boxes() -> None:
    offsets = np.random.default_rng(0).normal(size=(40, 4))
    with pytest.raises(ModelError, match=r"offsets from anchors.*ssd-raw"):
        decoding.ssd([offsets, scores(40, 4, 0.7)], SIZE)


def test_boxes_may_be_in_pixels_or_fractions() -> None:
    boxes = np.zeros((6, 4), np.float32)
    boxes[5] = BOX
    assert_found(decoding.plain_boxes([boxes, scores(6, 5, 0.3)], SIZE), 0.3)
    fractions = boxes / np.array([96, 64, 96, 64], np.float32)
    assert_found(decoding.plain_boxes([fractions, scores(6, 5, 0.3)], SIZE, fractions=True), 0.3)


def test_efficientdet_decodes_offsets_from_anchors() -> None:
    grid = decoding.efficientdet_anchors(SIZE, (8, 16, 32, 64, 128), 4.0)
    cells = sum(-(-64 // s) * -(-96 // s) for s in (8, 16, 32, 64, 128))
    assert grid.shape == (9 * cells, 4)
    assert grid[0].tolist() == [4, 4, 32, 32]  # first cell of stride 8: centre ½·8, side 4·8
    at = 50
    offsets = np.zeros((len(grid), 4), np.float32)
    offsets[at, [1, 0]] = (CENTRE - grid[at, :2]) / grid[at, 2:]
    offsets[at, [3, 2]] = np.log(SIDES / grid[at, 2:])
    assert_found(decoding.efficientdet([offsets, scores(len(grid), at, 0.9)], SIZE), 0.9)


def test_efficientdet_anchors_are_square_then_wide_then_tall() -> None:
    """As in the authors' code: for each of three octaves (1, 1), (1.4, 0.7), (0.7, 1.4), width and height."""
    cell = decoding.efficientdet_anchors(SIZE, (8, 16, 32, 64, 128), 4.0)[:9, 2:]
    expected = [[32 * octave * w, 32 * octave * h] for octave in (1, 2 ** (1 / 3), 2 ** (2 / 3))
                for w, h in ((1, 1), (1.4, 0.7), (0.7, 1.4))]  # fmt: skip
    np.testing.assert_allclose(cell, expected, rtol=1e-6)


def test_reads_the_rows_of_efficientdet() -> None:
    rows = np.zeros((3, 7), np.float32)
    rows[1] = [0, BOX[1], BOX[0], BOX[3], BOX[2], 0.8, LABEL]
    assert_found(decoding.efficientdet_rows([rows], SIZE), 0.8)


def one_bin(value: float, bins: int = 8) -> np.ndarray:
    """Logits whose expectation is `value`, split between the two nearest bins."""
    low = int(value)
    share = np.full(bins, 1e-9)
    share[low], share[low + 1] = 1 - (value - low) + 1e-9, value - low + 1e-9
    return np.log(share)


@pytest.mark.parametrize("interleaved", [False, True])
def test_decodes_the_distances_of_nanodet(interleaved: bool) -> None:
    levels = [len(decoding.grid(SIZE, stride)) for stride in (8, 16, 32)]
    kinds = [np.zeros((n, CLASSES), np.float32) for n in levels]
    bins = [np.zeros((n, 32), np.float32) for n in levels]
    at = 8  # stride 16, six cells to a row: column 2, row 1; its centre is 39.5, 23.5
    kinds[1][at, LABEL] = 0.6
    distances = [39.5 - BOX[0], 23.5 - BOX[1], BOX[2] - 39.5, BOX[3] - 23.5]
    bins[1][at] = np.concatenate([one_bin(d / 16) for d in distances])
    outputs = (
        [array for pair in zip(kinds, bins, strict=True) for array in pair]
        if interleaved
        else [*kinds, *bins]
    )
    assert_found(decoding.nanodet(outputs, SIZE), 0.6)


def test_picodet_has_four_levels_and_its_centres_at_half_cells() -> None:
    levels = [len(decoding.grid(SIZE, stride)) for stride in (8, 16, 32, 64)]
    kinds = [np.zeros((n, CLASSES), np.float32) for n in levels]
    bins = [np.zeros((n, 32), np.float32) for n in levels]
    kinds[1][8, LABEL] = 0.6  # stride 16, column 2, row 1: its centre is 40, 24
    distances = [40 - BOX[0], 24 - BOX[1], BOX[2] - 40, BOX[3] - 24]
    bins[1][8] = np.concatenate([one_bin(d / 16) for d in distances])
    assert_found(decoding.picodet([*kinds, *bins], SIZE), 0.6)
    with pytest.raises(decoding.Unreadable, match=r"strides \(8, 16, 32, 64\)"):
        decoding.picodet([*kinds[:3], *bins[:3]], SIZE)


def test_scrfd_identifies_its_outputs_by_shape() -> None:
    outputs = []
    for stride in (8, 16, 32):
        rows = 2 * len(decoding.grid(SIZE, stride))
        outputs += [np.zeros((rows, width), np.float32) for width in (10, 1, 4)]
    at = 2 * (12 * 2 + 4) + 1  # second row of the cell at column 4, row 2 of stride 8: its corner is 32, 16
    outputs[1][at] = 0.9
    outputs[2][at] = np.array([32 - BOX[0], 16 - BOX[1], BOX[2] - 32, BOX[3] - 16]) / 8
    assert_found(decoding.scrfd(outputs, SIZE), 0.9, label=0)
    with pytest.raises(ValueError, match="for stride 64"):
        decoding.scrfd(outputs, SIZE, strides=(8, 64))


def test_nanodet_plus_is_one_table() -> None:
    cells, steps = decoding.grids(SIZE, (8, 16, 32, 64))
    at = int(np.flatnonzero((steps[:, 0] == 16) & (cells == [2, 1]).all(axis=1))[0])
    table = np.zeros((len(cells), CLASSES + 32), np.float32)
    table[at, LABEL] = 0.6
    distances = [32 - BOX[0], 16 - BOX[1], BOX[2] - 32, BOX[3] - 16]
    table[at, CLASSES:] = np.concatenate([one_bin(d / 16) for d in distances])
    assert_found(decoding.nanodet_plus([table], SIZE, classes=CLASSES), 0.6)


def test_fastestdet_combines_scores() -> None:
    output = np.zeros((5 + CLASSES, 4, 6), np.float32)  # stride 16
    output[3:5] = -20
    y, x = 1, 2
    output[0, y, x], output[5 + LABEL, y, x] = 0.8, 0.5
    output[1:3, y, x] = np.arctanh(CENTRE / 16 - [x, y])
    fractions = SIDES / [96, 64]
    output[3:5, y, x] = np.log(fractions / (1 - fractions))
    assert_found(decoding.fastestdet([output], SIZE), 0.8**0.6 * 0.5**0.4)


def test_centernet_takes_peaks_only() -> None:
    heat = np.full((CLASSES, 16, 24), 0.01, np.float32)  # stride 4
    heat[LABEL, 6, 10], heat[LABEL, 6, 11] = 0.9, 0.8  # the neighbour is no object of its own
    sides, offset = np.zeros((2, 16, 24), np.float32), np.zeros((2, 16, 24), np.float32)
    sides[:, 6, 10], offset[:, 6, 10] = SIDES / 4, CENTRE / 4 - [10, 6]
    found = decoding.centernet([heat, sides, offset], SIZE, logits=False)
    assert_found(found, 0.9)
    assert (found.scores > 0.5).sum() == 1


def test_detr_ignores_the_last_class() -> None:
    logits = np.zeros((5, CLASSES + 1), np.float32)
    logits[:, -1] = 9
    logits[3, LABEL], logits[3, -1] = 8, 0
    boxes = np.full((5, 4), 0.1, np.float32)
    boxes[3] = [40 / 96, 26 / 64, 40 / 96, 32 / 64]
    assert_found(decoding.detr([logits, boxes], SIZE), np.exp(8) / (np.exp(8) + CLASSES))


def test_rtdetr_scores_are_independent() -> None:
    logits = np.full((5, CLASSES), -9.0, np.float32)
    logits[3, LABEL] = 1
    boxes = np.full((5, 4), 0.1, np.float32)
    boxes[3] = [40 / 96, 26 / 64, 40 / 96, 32 / 64]
    assert_found(decoding.rtdetr([logits, boxes], SIZE), 1 / (1 + np.exp(-1)))


def test_reads_labelled_and_torchvision_outputs() -> None:
    labels, strength = np.array([1, LABEL]), np.array([0.2, 0.5])
    boxes = np.stack([BOX / 2, BOX])
    assert_found(decoding.labelled([labels, boxes, strength], SIZE), 0.5)
    found = decoding.torchvision([boxes, labels, strength, np.ones((2, 1, *SIZE))], SIZE)
    assert_found(found, 0.5)
    assert found.masks is not None
    assert found.masks.shape == (2, *SIZE)


def test_torchvision_may_return_no_box() -> None:
    found = decoding.torchvision([np.zeros((0, 4)), np.zeros(0), np.zeros(0), np.zeros((0, 1, 8, 8))], SIZE)
    assert len(found.boxes) == 0


def test_reads_semantic_scores_in_every_layout() -> None:
    planes = np.zeros((3, 4, 5))
    assert decoding.score_planes([planes.transpose(1, 2, 0)], SIZE, channels_last=True).shape == (3, 4, 5)
    assert decoding.class_map([np.zeros((1, 4, 5), np.int64)], SIZE).shape == (4, 5)
    assert decoding.class_map([np.zeros((4, 5, 1), np.int64)], SIZE).shape == (4, 5)
    assert decoding.class_map([np.zeros((1, 5), np.int64)], SIZE).shape == (1, 5)


@pytest.mark.parametrize(
    ("decoder", "limits"),
    [("yolox", (0.001, 300, 0.65)), ("yolov5", (0.001, 300, 0.65)), ("yolov8", (0.001, 300, 0.7)),
     ("yolov10", (0.001, 300, None)), ("fastestdet", (0.001, 100, 0.45)), ("picodet", (0.025, 100, 0.6)),
     ("nanodet", (0.01, 100, 0.6)), ("ssd", (0.01, 100, 0.6)), ("detr", (0.01, 100, None))],
)  # fmt: skip
def test_thresholds_are_those_of_the_networks_own_validation(decoder: str, limits: tuple) -> None:
    assert DECODERS[decoder].limits == Limits(*limits)


def test_every_decoder_says_which_outputs_it_needs() -> None:
    assert all(decoder.outputs for decoder in DECODERS.values())
    assert all(decoder.function.__doc__ for decoder in DECODERS.values())


def test_without_offsets_centernet_takes_the_middle_of_a_cell() -> None:
    heat = np.full((CLASSES, 16, 24), 0.01, np.float32)  # stride 4
    heat[LABEL, 6, 9] = 0.9
    sides = np.zeros((2, 16, 24), np.float32)
    sides[:, 6, 9] = SIDES / 4
    middle = np.array([9.5 * 4, 6.5 * 4])
    found = decoding.centernet([heat, sides], SIZE, logits=False)
    assert_found(found, 0.9, box=np.concatenate([middle - SIDES / 2, middle + SIDES / 2]))
