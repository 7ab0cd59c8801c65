"""Delete the weights of a run's models (rule drop_models).

Records stay, with the hash of every file, so that `rebuild` or a run of Snakemake can make the weights again.
"""

from pathlib import Path

import pyarrow as pa

from workflow_scripts.columns import DROPPED_WEIGHTS
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import read_record
from workflow_scripts.provenance.job import Job, cache_key
from workflow_scripts.provenance.record import Record

_WEIGHTS = ".safetensors"


def drop_models(job: Job) -> None:
    """Note the weights and delete them."""
    folder = job.outputs["dropped"].parent
    models = [folder / f"seed{seed}" / "model" for seed in job.settings["seeds"]]
    weights = [(model / name, sha256) for model in models for name, sha256 in _weights(model)]
    table = pa.table(
        {"file": [path.as_posix() for path, _ in weights], "sha256": [sha256 for _, sha256 in weights]},
        schema=DROPPED_WEIGHTS,
    )
    job.write({"dropped": table})
    for path, _ in weights:
        path.unlink(missing_ok=True)  # gone already where an earlier try was stopped
    for model in models:
        cache.forget(cache_key(_record(model)))


def _record(model: Path) -> Record:
    record = read_record(model)
    assert record is not None, model
    return record


def _weights(model: Path) -> list[tuple[str, str]]:
    files = sorted(_record(model).files.items())
    return [(name, sha256) for name, sha256 in files if name.endswith(_WEIGHTS)]
