"""Learn post-processings from Wikitext's vectors of one source, and measure their isotropy (rule fit_wikitext)."""

from workflow_scripts.artefacts import read_table, write_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.extraction.opening import Files, open_source
from workflow_scripts.extraction.study import JobSettings, Learnt, absent, fits_table, learn, plan, rows_of
from workflow_scripts.extraction.wikitext import Wikitext, isotropy, sentences_of
from workflow_scripts.job import parse_job
from workflow_scripts.schemas import SENTENCES


def main() -> None:
    """Pass Wikitext through the source once, fit, measure, write."""
    job = parse_job(
        "fit_wikitext",
        __doc__,
        wildcards=["source"],
        inputs=["encoder", "biases", "sentences"],
        many=["words", "documents", "averages"],
        outputs=["shaping", "scores"],
    )
    source = job.wildcards["source"]
    settings = JobSettings.parse(job.settings["learnt"], "extraction")
    measured = JobSettings.parse(job.settings["isotropy"], "extraction")
    wikitext = Wikitext.parse(job.settings["wikitext"], "extraction.wikitext")
    opened = open_source(settings, Files.of(job))
    if opened is None:
        learnt = Learnt([], absent(wikitext.dataset))
    else:
        task = isotropy(
            wikitext.dataset, sentences_of(read_table(job.inputs["sentences"], SENTENCES), wikitext)
        )
        cells, shown = plan(settings, opened.depth), plan(measured, opened.depth)
        learnt = learn(settings, cells, shown, task, wikitext.max_tokens, opened)
    record = job.record(labels=[wikitext.label] if wikitext.label else [])
    write_table(job.outputs["shaping"], fits_table(learnt.fits), record)
    write_table(job.outputs["scores"], rows_of(source, "isotropy", learnt.scores), record)


if __name__ == "__main__":
    with one_line_errors():
        main()
