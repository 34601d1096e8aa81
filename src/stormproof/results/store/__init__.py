"""The store: a run's predictions on disk, one folder per run.

    run.json           what the run is: model, dataset, seed, conditions, versions, hardware
    run.yaml           the settings that made it; `stormproof run --config` repeats it
    parts/*.parquet    one row per image and condition (`schema`), one file per chunk of images
    failures/*.json    cells that failed, one file per chunk; they are tried again by the next run

Every file appears whole or not at all, so what is there can be trusted whenever the run was stopped.
"""
