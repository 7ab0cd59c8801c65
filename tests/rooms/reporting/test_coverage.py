"""The ledger of printed numbers, on tables small enough to count by hand."""

import pytest

from workflow_scripts.data.printed import read_printed
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.reporting.coverage import (
    Coverage,
    Line,
    Panel,
    Reason,
    lines,
    reasons_of,
)
from workflow_scripts.settings.grids import PAPERS

HEAD = "group,row,column,value,grid,run,heading,source,note\n"
CONTENT = (
    HEAD
    + "BERT,SimCSE,STS12,68.40,s2sent_table2,simcse.bert,STS12,Table 2,\n"
    + "BERT,SimCSE,Avg,76.25,s2sent_table2,simcse.bert,mean,Table 2,\n"
    + "BERT,IS-BERT,STS12,56.77,,,,Table 2,\n"
    + "BERT,IS-BERT,Avg,66.58,,,,Table 2,\n"
    + "RoBERTa,IS-BERT,Avg,67.00,,,,Table 2,\n"
    + 'BERT,words,cosine,0.76,s2sent_figure5,simcse.bert,figure: token_similarity,"Table 2",\n'
)
CELLS = read_printed((CONTENT).encode(), "s2sent_table2")
ONE = Reason(table="s2sent_table2", group="BERT", row="IS-BERT", kind="no weights", reason="nobody has them")
OTHER = Reason(table="s2sent_table2", group="RoBERTa", kind="not described", reason="the text is silent")
DRAWN = Panel(figure="Figure 5", panel="left", grid="s2sent_figure5", drawn="sweep")


@pytest.mark.parametrize(
    ("reasons", "message"),
    [
        ([ONE], "s2sent_table2: RoBERTa, IS-BERT, Avg: has neither a run nor a reason"),
        ([OTHER], "s2sent_table2: BERT, IS-BERT, STS12: has neither a run nor a reason"),
        (
            [ONE, OTHER, ONE.model_copy(update={"row": "SimCSE", "column": "Avg"})],
            "s2sent_table2: BERT, SimCSE, Avg: has a run and a reason, 'nobody has them'",
        ),
        (
            [ONE, OTHER, ONE.model_copy(update={"row": "ArcCSE"})],
            "s2sent_table2: no cell without a run needs 'nobody has them'",
        ),
        (
            [ONE, OTHER, ONE.model_copy(update={"table": "s2sent_table9"})],
            "s2sent_table9: no cell without a run needs",
        ),
    ],
)
def test_the_first_cell_with_neither_or_both_is_named_and_so_is_a_reason_for_nothing(reasons, message):
    with pytest.raises(DataError, match=message):
        reasons_of(CELLS, reasons)


EMPTY = {paper: Coverage(reasons=[], panels=[]) for paper in PAPERS}


def test_the_overview_counts_tables_figures_and_all():
    gap = Panel(figure="Figure 5", panel="right", kind="not built", reason="it is not")
    ledgers = EMPTY | {"s2sent": Coverage(reasons=[ONE, OTHER], panels=[DRAWN, gap])}
    measured = {("s2sent_table2", "simcse.bert", "mean"), ("s2sent_figure5", "", "token_similarity")}
    measured |= {("s2sent_figure5", "", "sweep"), ("s2sent_table2", "other", "mean")}
    elsewhere = read_printed((HEAD + "x,y,z,1,,,,a,\n").encode(), "lab_evaluation")
    found = lines([*CELLS, *elsewhere], ledgers, measured)
    reasons = {"no weights": 2, "not described": 1}
    assert found[:3] == [
        Line("s2sent", "Table 2", 6, 3, 2, reasons),
        Line("s2sent", "panels of figures", 2, 1, 1, {"not built": 1}),
        Line("s2sent", "all", 6, 3, 2, reasons),
    ]
    assert [line.printed for line in found[3:]] == [0] * 8


@pytest.mark.parametrize(
    "panel",
    [
        {},
        {"grid": "g"},
        {"grid": "g", "drawn": "sweep", "kind": "not built", "reason": "it is not"},
        {"kind": "not built"},
        {"kind": "because", "reason": "it is not"},
    ],
)
def test_a_panel_is_drawn_or_has_a_reason(panel):
    content = {"reasons": [], "panels": [{"figure": "Figure 1", "panel": "all"} | panel]}
    with pytest.raises(ConfigError, match=r"ledger/jtcse\.yaml\.panels\.0"):
        Coverage.parse(content, "ledger/jtcse.yaml")
