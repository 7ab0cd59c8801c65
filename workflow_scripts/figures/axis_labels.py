"""Labels of axes that name the data a column was measured on, which several figures print."""

from workflow_scripts.reporting.called import Called
from workflow_scripts.settings.experiment import Column, Experiment, MeanColumn


def column_label(experiment: Experiment, heading: str, called: Called) -> str:
    """What a column holds: its heading, metric, scale and data, or how many columns it averages."""
    column = next(column for column in experiment.columns if column.heading == heading)
    if isinstance(column, MeanColumn):
        return f"{heading} (mean of {len(column.mean_of)} columns)"
    if not isinstance(column, Column):
        return heading
    data = called.dataset(column.task)
    metric = "" if column.metric in heading.lower() else f", {column.metric.capitalize()}"
    scale = "" if column.scale == 1 else f" \N{MULTIPLICATION SIGN} {column.scale:g}"
    on = "" if data.lower().startswith(heading.lower()) else f" on {data}"
    return f"{heading}{metric}{scale}{on}"
