"""Copy one published encoder from the first of its sources that is available, and check it (rule fetch_encoder)."""

import shutil

from workflow_scripts.data.encoders import check_usable, locate
from workflow_scripts.data.published import copy_files, published_labels
from workflow_scripts.data.sources import SourcePlan, check_planned
from workflow_scripts.models.arrival import check_encoder
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.sources import Fetch


def fetch_encoder(job: Job) -> None:
    """Write a checked copy of the encoder's first available source."""
    name = job.wildcards["encoder"]
    block = Fetch.parse(job.settings["encoder"], f"encoders.{name}")
    origin, source = locate(name, block, job.workplace.data_root)
    check_planned(f"encoders.{name}", SourcePlan.parse(job.settings["source"], "source"), source.values())
    check_usable(origin)
    labels = [*published_labels(origin)]
    record = job.record(external=source, labels=[block.label])
    with writing_model_folder(job.outputs["record"].parent, record, labels) as folder:
        copy_files(origin, folder, source)
        labels += check_encoder(origin, folder, folder / "probe")
        shutil.rmtree(folder / "probe", ignore_errors=True)
