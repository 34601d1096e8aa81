"""The classes of the street.

Objects have COCO's class names, so that detectors trained on COCO can be used directly; a cyclist is a person
and a bicycle, as in COCO. Semantic classes have Cityscapes' names. Traffic lights count as traffic signs,
lawns as vegetation, fences and walls as buildings; bins, benches and other clutter have no class and are
ignored.
"""

from __future__ import annotations

PERSON, BICYCLE, CAR, BUS, TRUCK, LIGHT, STOP = range(7)
OBJECTS = ("person", "bicycle", "car", "bus", "truck", "traffic light", "stop sign")
COCO_IDS = (1, 2, 3, 6, 8, 10, 13)  # COCO's category ids of these classes

SEMANTIC = (
    "road", "sidewalk", "building", "pole", "traffic sign", "vegetation", "sky", "person", "car", "truck",
    "bus", "bicycle",
)  # fmt: skip
ROAD, SIDEWALK, BUILDING, POLE, SIGN, VEGETATION, SKY = range(7)
VOID = 255

# The semantic class of each object class.
SEMANTIC_OF = tuple(
    SEMANTIC.index({"traffic light": "traffic sign", "stop sign": "traffic sign"}.get(name, name))
    for name in OBJECTS
)
