"""Fit post-processings to Wikitext's vectors of one representation, and measure isotropy (rule fit_wikitext)."""

from workflow_scripts.columns.corpora import SENTENCES
from workflow_scripts.extraction.opening import open_representation
from workflow_scripts.extraction.study import JobSettings, Learnt, absent, fits_table, learn, plan, rows_of
from workflow_scripts.extraction.wikitext import isotropy, sentences_of
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction.wikitext import Wikitext


def main(job: Job) -> None:
    """Encode Wikitext once, fit, measure, write."""
    representation = job.wildcards["representation"]
    settings = JobSettings.parse(job.settings["learnt"], "extraction")
    measured = JobSettings.parse(job.settings["isotropy"], "extraction")
    wikitext = Wikitext.parse(job.settings["wikitext"], "extraction.wikitext")
    opened = open_representation(settings, job)
    if opened is None:
        learnt = Learnt([], absent(wikitext.dataset))
    else:
        task = isotropy(
            wikitext.dataset, sentences_of(read_table(job.inputs["sentences"], SENTENCES), wikitext)
        )
        cells, shown = plan(settings, opened.depth), plan(measured, opened.depth)
        learnt = learn(settings, cells, shown, task, wikitext.max_tokens, opened)
    record = job.record(labels=[wikitext.label] if wikitext.label else [])
    write_table(job.outputs["fitted"], fits_table(learnt.fits), record)
    write_table(job.outputs["scores"], rows_of(representation, "isotropy", learnt.scores), record)
