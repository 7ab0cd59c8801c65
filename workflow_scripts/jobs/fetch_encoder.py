"""Copy one published encoder from the first of its sources that is available (rule fetch_encoder)."""

from workflow_scripts.data.encoders import locate, other_ids
from workflow_scripts.data.planned import check_planned
from workflow_scripts.data.published import copy_files, labels_of, refusals
from workflow_scripts.data.sources import data_root
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.encoders import Fetch


def main(job: Job) -> None:
    """Find the encoder, check its weights, write its folder."""
    name = job.wildcards["encoder"]
    block = Fetch.parse(job.settings["encoder"], f"encoders.{name}")
    origin, source = locate(name, block, data_root())
    found = {given.path: given.sha256 for given in source.values()}
    check_planned(f"encoders.{name}", job.settings["source"], found)
    if refused := next(refusals(origin), None):
        raise DataError(f"encoders.{name}: {refused}")
    record = job.record(foreign=source, labels=[block.label, *labels_of(origin), *other_ids(origin)])
    with writing_model_folder(job.outputs["record"].parent, record) as folder:
        copy_files(origin, folder, source)
