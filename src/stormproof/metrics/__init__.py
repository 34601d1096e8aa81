"""What one condition's predictions are worth: scores of detections, masks, label maps and images.

A metric sees truths and predictions, never a model; it returns numbers, never a plot.

- `measure`: how a metric declares its measures, so that `stormproof score` finds them
- `records`: truths and predictions of a set as flat, checked arrays
- `coco`, `voc`: average precision and recall
- `semantic`: confusion, IoU, pixel accuracy
- `objects`: per-object error and flaw symptoms
- `roc`: detection rate against false positives per image, average detection rate, worst images
- `quality`, `fidelity`, `crops`: how far a corrupted image is from the clean one
"""
