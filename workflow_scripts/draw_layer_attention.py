"""Draw the attention over layers of one experiment's runs (rule draw_layer_attention)."""

import pyarrow as pa

from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation.layer_attention import Config, layer_weights
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.reporting.layer_attention import DESCRIPTION, TITLE, draw
from workflow_scripts.reporting.records import run_and_seed
from workflow_scripts.reporting.style import FigureStyle


def main() -> None:
    """Load the runs, one after the other, weigh the sentences' layers, draw, write."""
    job = parse_job(
        "draw_layer_attention", __doc__, wildcards=["experiment"], many=["models"], outputs=["figure", "data"]
    )
    config = Config.parse(job.settings["layer_attention"], "report.layer_attention")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    parts = []
    for path in job.many("models"):
        encoder, tokenizer = load_encoder(path.parent)
        assert isinstance(encoder, SentenceEncoder)
        run, seed = run_and_seed(path)
        parts.append(layer_weights(run, seed, encoder, tokenizer, config))
    record = job.record(modules=["models.readouts.layer_attention"])
    data = pa.concat_tables(parts)
    title = f"{TITLE}: {job.settings['title']}"
    write_figure(job, record, data, title, DESCRIPTION, lambda notes: draw(data, style, title, notes))


if __name__ == "__main__":
    with one_line_errors():
        main()
