"""The verdicts of a study on the papers' claims."""

import pyarrow as pa
import pytest

from tests.support.verb_answers import data, printed
from workflow_scripts.columns import CLAIMS
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.provenance.artefacts import job_record, write_table

TESTED = {
    "paper": "jtcse",
    "claim": "over_simcse",
    "place": "Table I",
    "says": "JTCSE is better.",
    "expects": "higher",
    "printed_ours": 79.7,
    "printed_theirs": 76.25,
    "verdict": "supported",
    "reason": "2.00 higher (1.00 to 3.00) over 5 seeds",
    "ours": 72.0,
    "theirs": 70.0,
    "difference": 2.0,
    "low": 1.0,
    "high": 3.0,
    "over": "seeds",
    "n": 5,
    "p_value": 0.004,
    "corrected_p": 0.0123,
    "labels": [],
}
ONE_VALUE = TESTED | {"claim": "once", "verdict": "undecided", "low": None, "high": None, "p_value": None}
ONE_VALUE |= {"corrected_p": None, "n": 1, "over": ""}
NOT_RUN = {"paper": "three_r", "claim": "llm", "verdict": "not run", "reason": "It needs a language model."}
TWO_SEEDS = ONE_VALUE | {"claim": "twice", "n": 2, "over": "seeds"}
ROWS = [TESTED, ONE_VALUE, TWO_SEEDS, NOT_RUN]


def written(folder, rows=ROWS, alpha=0.05):
    """A study with these verdicts."""
    file = folder / "claims.parquet"
    settings = {"significance": {"alpha": alpha}}
    record = job_record("judge_claims", settings=settings, inputs={}, outputs=[file])
    write_table(file, pa.Table.from_pylist(rows, schema=CLAIMS), record)
    return folder


@pytest.fixture
def study(tmp_path):
    return written(tmp_path)


def test_verdicts_are_counted_by_paper_and_printed_as_markdown(study):
    (row,) = data("claims", "jtcse", "--study", study)[1]["verdicts"]
    assert (row["paper"], row["supported"], row["undecided"]) == ("JTCSE", 1, 2)
    counted, compared = printed("claims", "--study", study, "--markdown")[1].strip().split("\n\n")
    assert counted.splitlines() == [
        "| paper | supported | contradicted | undecided | not run |",
        "| --- | --- | --- | --- | --- |",
        "| 3R | 0 | 0 | 0 | 1 |",
        "| JTCSE | 1 | 0 | 2 | 0 |",
        "| all | 1 | 0 | 2 | 1 |",
    ]
    assert compared.splitlines()[2:] == [
        "| JTCSE, Table I | JTCSE is better. | 79.7 against 76.25 "
        "| 72.00 against 70.00: 2.00 (1.00 to 3.00), 5 seeds | .004 / .012 | supported |",
        "| JTCSE, Table I | JTCSE is better. | 79.7 against 76.25 "
        "| 72.00 against 70.00; nothing repeated |  /  | undecided |",
        "| JTCSE, Table I | JTCSE is better. | 79.7 against 76.25 "
        "| 72.00 against 70.00; 2 seeds, too few for an interval |  /  | undecided |",
    ]


def test_claims_of_a_users_own_paper_are_counted_too(tmp_path):
    own = TESTED | {"paper": "mine", "verdict": "contradicted"}
    counts = data("claims", "--study", written(tmp_path, [own, TESTED]))[1]["verdicts"]
    assert [(row["paper"], row["supported"], row["contradicted"]) for row in counts] == [
        ("JTCSE", 1, 0), ("mine", 0, 1), ("all", 1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(("alpha", "level"), [(0.05, "95%"), (0.01, "99%"), (0.001, "99.9%")])
def test_the_heading_has_the_level_of_the_studys_intervals(tmp_path, alpha, level):
    said = printed("claims", "--study", written(tmp_path, alpha=alpha), "--markdown")[1]
    assert f"| here: difference ({level}) |" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--study", "{study}/none"], r"none: no such study\. Make it: `snakemake"),
        (["--study", "{study}/begun"], r"Give the folder of a finished study, results/<study>\."),
        (["jtces", "--study", "{study}"], r"jtces: .* compares none of its claims\. Did you mean jtcse\?"),
    ],
)
def test_a_wrong_call_is_one_line(study, monkeypatch, words, said):
    monkeypatch.chdir(study)  # without the results of a study that this clone has made
    (study / "begun").mkdir()
    with pytest.raises((ConfigError, DataError), match=said):
        printed("claims", *(word.format(study=study) for word in words))
