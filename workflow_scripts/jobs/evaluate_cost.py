"""Measure what one run costs, in comparison with the encoder it started from (rule evaluate_cost)."""

from functools import partial

from workflow_scripts.evaluation import cost
from workflow_scripts.evaluation.base import score_table
from workflow_scripts.models.encoder import load_backbone
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites import Cost as Config


def main(job: Job) -> None:
    """Count, time both alternately, write counts and times separately."""
    config = Config.parse(job.settings["suite"], f"suites.cost.{job.wildcards['suite']}")
    encoder, _ = load_encoder(job.inputs["model"].parent)
    record = job.record()
    backbone = load_backbone(job.inputs["base"].parent)
    ours = (encoder, encoder)
    base = (backbone, partial(cost.run_backbone, backbone))
    scores, times = cost.evaluate(config, ours, base), cost.time_against_base(config, ours, base)
    write_table(job.outputs["scores"], score_table(scores, **job.wildcards), record)
    apart = job.outputs["times"]  # times differ from run to run
    apart.parent.mkdir(parents=True, exist_ok=True)
    of_times = record.model_copy(update={"outputs": [apart.as_posix()]})
    write_table(apart, score_table(times, **job.wildcards), of_times)
