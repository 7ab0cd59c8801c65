"""Columns of tables."""

import pyarrow as pa

TABLE = pa.schema(
    [
        ("run", pa.string()),
        ("heading", pa.string()),
        ("suite", pa.string()),
        ("task", pa.string()),
        ("aggregation", pa.string()),
        ("metric", pa.string()),
        ("scale", pa.float64()),
        ("digits", pa.int32()),
        ("mean", pa.float64()),
        ("sd", pa.float64()),
        ("seeds", pa.int32()),
        ("n", pa.int64()),
        ("repeats", pa.list_(pa.int32())),
        ("values", pa.list_(pa.float64())),
        ("of_tasks", pa.list_(pa.float64())),
        ("baseline", pa.string()),
        ("difference", pa.float64()),
        ("p_value", pa.float64()),
        ("detectable", pa.float64()),
        ("published", pa.float64()),
        ("published_source", pa.string()),
        ("note", pa.string()),
        ("labels", pa.list_(pa.string())),
    ]
)
"""Cells of one table, of an experiment, of the extraction study or of statistics of datasets, in the order of its rows.

A row ``run`` and a column ``heading`` name the cell. Numbers are multiplied by ``scale``, null where a column is
computed from others, and are printed with ``digits`` decimals. Mean and sd are over ``values``, of as many seeds (or
draws of random vectors) as ``seeds`` counts and ``repeats`` names; a gap has a null mean and a note. ``of_tasks`` are
the parts of a mean over tasks, in the order of ``task``. ``difference`` is that to ``baseline``, the run that this one
is compared with (null if with none), ``detectable`` the smallest true difference that these seeds could detect; ``n``
counts what one seed's value was computed from. ``published_source`` is the citation of the published value."""
