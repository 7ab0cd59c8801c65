"""Draw the modulus loss over moduli and cosine (rule draw_modulus_surface)."""

from workflow_scripts.errors import one_line_errors
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.experiment import ModulusSurface
from workflow_scripts.reporting.modulus_surface import DESCRIPTION, TITLE, draw, surface
from workflow_scripts.reporting.style import FigureStyle


def main() -> None:
    """Compute the surface, draw, write."""
    job = parse_job(
        "draw_modulus_surface", __doc__, wildcards=["experiment"], inputs=[], outputs=["figure", "data"]
    )
    name = job.wildcards["experiment"]
    config = ModulusSurface.parse(job.settings["modulus_surface"], f"experiments.{name}.modulus_surface")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    record = job.record()
    data = surface(config)
    title = f"{TITLE}: {job.settings['title']}"
    write_figure(job, record, data, title, DESCRIPTION, lambda notes: draw(data, style, title, notes))


if __name__ == "__main__":
    with one_line_errors():
        main()
