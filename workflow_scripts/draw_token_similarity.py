"""Draw how alike some runs of one experiment make the words of two sentences (rule draw_token_similarity)."""

import pyarrow as pa

from workflow_scripts.errors import ConfigError, one_line_errors
from workflow_scripts.evaluation.token_similarity import Config, similarities
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.reporting.experiment import TokenCase
from workflow_scripts.reporting.records import run_and_seed
from workflow_scripts.reporting.style import FigureStyle
from workflow_scripts.reporting.token_similarity import DESCRIPTION, TITLE, draw


def main() -> None:
    """Load the runs, one after the other, compare words and sentences, draw, write."""
    job = parse_job(
        "draw_token_similarity",
        __doc__,
        wildcards=["experiment"],
        many=["models"],
        outputs=["figure", "data"],
    )
    name = job.wildcards["experiment"]
    config = Config.parse(job.settings["token_similarity"], "report.token_similarity")
    case = TokenCase.parse(job.settings["case"], f"experiments.{name}.token_similarity")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    parts, modules = [], set()
    for path in job.many("models"):
        encoder, tokenizer = load_encoder(path.parent)
        run, seed = run_and_seed(path)
        if not isinstance(encoder, SentenceEncoder):
            raise ConfigError(
                f"experiments.{name}.token_similarity.runs: {run} holds several encoders. Name others."
            )
        parts.append(similarities(run, seed, encoder, tokenizer, case.sentences, config))
        modules |= set(encoder.modules_by_name)
    record = job.record(modules=sorted(modules))
    data = pa.concat_tables(parts)
    title = f"{TITLE}: {job.settings['title']}"
    write_figure(job, record, data, title, DESCRIPTION, lambda notes: draw(data, style, title, notes))


if __name__ == "__main__":
    with one_line_errors():
        main()
