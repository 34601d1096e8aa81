"""Metrics: scores of detections, masks, label maps and images under one condition, and their aggregates.

A metric sees ground truth and predictions, never a model; it returns numbers, never a plot.

- `metric`, `aggregate`: the decorators that declare a metric or an aggregate to `stormproof score`
- `records`: ground truth and predictions of a set as flat, checked arrays
- `coco`, `voc`: average precision and recall
- `semantic`: confusion, IoU, pixel accuracy
- `panoptic`: panoptic quality
- `object_error`: per-object error and flaw symptoms
- `error_types`, `lrp`, `calibration`: why detections are wrong, and whether their scores can be trusted
- `stability`: flicker and jitter over clips
- `roc`: detection rate against false positives per image, average detection rate, worst images
- `quality`, `fidelity`: how far a corrupted image is from the clean one
- `grid`, `performance`, `degradation`, `corruption_error`, `sequences`: aggregates over all conditions
"""
