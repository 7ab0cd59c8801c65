"""Columns of the table of claims."""

import pyarrow as pa

NOT_RUN = "not run"
"""Verdict on a claim that a study does not compare."""

CLAIMS = pa.schema(
    [
        ("paper", pa.string()),
        ("claim", pa.string()),
        ("place", pa.string()),
        ("says", pa.string()),
        ("expects", pa.string()),
        ("margin", pa.float64()),
        ("printed_ours", pa.float64()),
        ("printed_theirs", pa.float64()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("table", pa.string()),
        ("run", pa.string()),
        ("heading", pa.string()),
        ("baseline", pa.string()),
        ("baseline_heading", pa.string()),
        ("ours", pa.float64()),
        ("theirs", pa.float64()),
        ("difference", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("over", pa.string()),
        ("n", pa.int64()),
        ("detectable", pa.float64()),
        ("p_value", pa.float64()),
        ("corrected_p", pa.float64()),
        ("labels", pa.list_(pa.string())),
    ]
)
"""A row per claim, in the order of the papers' files. ``verdict`` is supported, contradicted, undecided or not run.
Values are in the table's units: ``ours`` of ``run`` and ``heading`` is compared with ``theirs`` of ``baseline``.
``difference`` is ours less theirs over ``n`` seeds, draws, tasks or pairs, as ``over`` says, with its interval from
``low`` to ``high``; ``p_value`` is that of the claim alone, ``corrected_p`` Holm's for all claims of the study, and
``detectable`` the smallest true difference that a test of this claim alone would mostly have found. A claim that is not
run has nulls there, and ``printed_ours`` and ``printed_theirs`` are the paper's numbers, null where it draws and does
not print them."""
