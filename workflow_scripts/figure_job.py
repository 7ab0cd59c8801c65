"""The end that all entry scripts of figures share: draw, and write the picture beside the numbers it shows."""

from collections.abc import Callable

import pyarrow as pa
from matplotlib.figure import Figure

from workflow_scripts.artefacts import write_page, write_table
from workflow_scripts.job import Job
from workflow_scripts.provenance import Record
from workflow_scripts.reporting.labels import told_apart
from workflow_scripts.reporting.style import figure_style, to_svg


def write_figure(
    job: Job,
    record: Record,
    data: pa.Table,
    title: str,
    description: str,
    draw: Callable[[list[str]], Figure],
) -> None:
    """Write the outputs ``figure`` and ``data`` of a job with one wildcard.

    Args:
        job: Whose rule and wildcard name the figure.
        record: What made the numbers; its labels are printed below the picture.
        data: What the picture shows.
        title: Read aloud in place of the picture.
        description: What the picture shows, for those who do not see it.
        draw: Makes the figure from the sentences that stand below it.
    """
    (shown,) = job.wildcards.values()
    name = f"{job.rule.removeprefix('draw_')}-{shown}".replace("_", "-")
    with figure_style():
        svg = to_svg(draw(told_apart(record.labels).sentences()), name, title, description)
    write_table(job.outputs["data"], data, record)
    write_page(job.outputs["figure"], svg, record)
