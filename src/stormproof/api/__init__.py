"""What a notebook sees, thin over engine, store and scoring. Its names are those of the package.

- `opened`: datasets and models, by spec or made in Python
- `running`: `run`, and `Run`, the folder of one
- `results`: `Scores`: mPC, rPC, a tidy table, a figure
"""
