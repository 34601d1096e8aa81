"""Pure functions of score grids: what the papers conclude from many conditions.

- `aggregate`: how a function is declared, so that `stormproof score` finds it
- `grid`: scores by condition; refuses to be averaged while cells are missing
- `performance`: P, mPC, rPC (*michaelis*)
- `degradation`: D, CD, rCD against a reference model (*kamann*)
- `corruption_error`: CE, mCE, change across scenarios and under an enhancement (*liu*)
- `sequences`: relative performance over an α sequence, distances between models (*theodoridis*)
- `prediction`: contextual mutators predicted from simple ones (*pezzementi*)
- `correlation`: gains against gains, correlation tables
- `published`: the papers' own numbers
"""
