"""Metrics: scores of detections, masks, label maps and images under one condition, and their aggregates.

A metric sees ground truth and predictions, never a model; it returns numbers, never a plot.

- `metric`, `aggregate`: the decorators that declare a metric or an aggregate to `stormproof score`
- `records`: ground truth and predictions of a set as flat, checked arrays; `inputs`: those of one condition
- `matching`, `cocomatching`, `precision`: which detection finds which object, and what follows for AP
- `coco`, `voc`, `lvis`: average precision and recall of boxes and masks
- `keypoints`, `oriented`: those of key points and of oriented boxes, whose forms are `points` and `corners`
- `semantic`, `panoptic`: confusion, IoU, pixel accuracy; panoptic quality
- `object_error`: per-object error and flaw symptoms
- `error_types`, `lrp`, `calibration`, `map_calibration`: what is wrong, and whether scores can be trusted
- `stability`: flicker and jitter over clips
- `roc`: detection rate against false positives per image, average detection rate, worst images
- `optimism`: by how much few images inflate a score
- `quality`, `fidelity`: how far a corrupted image is from the clean one
- `grid`, `performance`, `degradation`, `corruption_error`, `sequences`: aggregates over all conditions
- `published`, `correlation`, `prediction`: the papers' numbers, and statistics over several models
"""
