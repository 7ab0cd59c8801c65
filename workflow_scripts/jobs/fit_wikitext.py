"""Fit post-processings to Wikitext's vectors of one representation, and measure isotropy (rule fit_wikitext)."""

from workflow_scripts.columns import SENTENCES
from workflow_scripts.extraction.study import (
    Fitted,
    absent,
    fits_table,
    learn,
    open_representation,
    plan,
    rows_of,
)
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction import JobSettings, Wikitext


def fit_wikitext(job: Job) -> None:
    """Encode Wikitext once, fit, measure, write."""
    representation = job.wildcards["representation"]
    settings = JobSettings.parse(job.settings["learnt"], "extraction")
    measured = JobSettings.parse(job.settings["isotropy"], "extraction")
    wikitext = Wikitext.parse(job.settings["wikitext"], "extraction.wikitext")
    opened = open_representation(settings, job)
    if opened is None:
        fits, scores = list[Fitted](), absent(wikitext.dataset)
    else:
        table = job.read("sentences", SENTENCES).slice(0, wikitext.max_sentences)
        corpus = wikitext.dataset, list(dict.fromkeys(table["sentence"].to_pylist()))
        cells, shown = plan(settings, opened.depth), plan(measured, opened.depth)
        fits, scores = learn(settings, cells, shown, corpus, wikitext.max_tokens, opened)
    tables = {"fitted": fits_table(fits), "scores": rows_of(representation, "isotropy", scores)}
    job.write(tables, labels=[wikitext.label])
