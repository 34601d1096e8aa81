"""Metrics: scores of detections, masks, label maps and images under one condition, and their aggregates.

A metric sees truths and predictions, never a model; it returns numbers, never a plot.

- `metric`, `aggregate`: how a metric or an aggregate is declared, so that `stormproof score` finds it
- `records`: truths and predictions of a set as flat, checked arrays
- `coco`, `voc`: average precision and recall
- `semantic`: confusion, IoU, pixel accuracy
- `object_error`: per-object error and flaw symptoms
- `roc`: detection rate against false positives per image, average detection rate, worst images
- `quality`, `fidelity`, `crops`: how far a corrupted image is from the clean one
"""
