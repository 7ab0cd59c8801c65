"""Draw one experiment's runs in the alignment-uniformity plane (rule draw_alignment_uniformity)."""

import pyarrow.compute as pc

from workflow_scripts.artefacts import read_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.alignment_uniformity import DESCRIPTION, TITLE, Config, Headline, draw, points
from workflow_scripts.reporting.experiment import Experiment
from workflow_scripts.reporting.style import FigureStyle
from workflow_scripts.schemas import SCORES, TABLE


def main() -> None:
    """Read geometry and table, summarise over seeds, draw, write."""
    job = parse_job(
        "draw_alignment_uniformity",
        __doc__,
        wildcards=["experiment"],
        inputs=["table"],
        many=["scores"],
        outputs=["figure", "data"],
    )
    name = job.wildcards["experiment"]
    experiment = Experiment.parse(job.settings["experiment"], f"experiments.{name}")
    config = Config.parse(job.settings["alignment_uniformity"], "report.alignment_uniformity")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    record = job.record()
    heading = experiment.headline_column().heading
    table = read_table(job.inputs["table"], TABLE)
    column = table.filter(pc.equal(table["heading"], heading))
    headline = Headline(
        heading, dict(zip(column["run"].to_pylist(), column["mean"].to_pylist(), strict=True))
    )
    data = points((read_table(path, SCORES) for path in job.many("scores")), headline, config)
    title = f"{TITLE}: {experiment.title}"
    tasks = ", ".join(sorted({note for note in data["note"].to_pylist() if note}))
    measured = f"Bars: one standard deviation over seeds. Task {config.task}: {tasks}."
    write_figure(
        job,
        record,
        data,
        title,
        DESCRIPTION,
        lambda notes: draw(data, heading, style, title, [measured, *notes]),
    )


if __name__ == "__main__":
    with one_line_errors():
        main()
