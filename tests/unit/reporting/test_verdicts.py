"""Claims against a small study whose scores are known."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from workflow_scripts.columns.claims import CLAIMS
from workflow_scripts.columns.extraction import EXTRACTION
from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.scores import Score, score_table
from workflow_scripts.evaluation.significance import observed
from workflow_scripts.provenance.artefacts import job_record, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.tables import ScoreFile
from workflow_scripts.reporting.verdicts import Material, _compare, _material, judged, number
from workflow_scripts.settings.claims import HeldClaim
from workflow_scripts.settings.significance import Config

SETTINGS = {"alpha": 0.05, "power": 0.8, "resamples": 400, "seed": 0}
SIGNIFICANCE = Config.model_validate(SETTINGS)
SCORE = {"suite": "sts", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
GRID = {
    "title": "Toy",
    "source": "made up",
    "seeds": [1, 2, 3],
    "baseline": None,
    "suites": {"sts": ["sts"]},
    "runs": [
        {"method": ["frozen_cls", "frozen_avg"], "encoder": "minilm"},
        {"method": ["simcse", "better", "worse", "alike", "unsteady"], "encoder": "minilm",
         "corpus": "wiki"},
    ],
    "columns": [
        {"heading": "A", "task": "a", **SCORE},
        {"heading": "B", "task": "b", **SCORE},
        {"heading": "mean", "mean_of": ["A", "B"], "digits": 2},
        {"heading": "A over B", "ratio_of": ["A", "B"], "digits": 2},
    ],
}  # fmt: skip
SEEDS = {
    "simcse.minilm.wiki": [0.700, 0.702, 0.701],
    "better.minilm.wiki": [0.730, 0.733, 0.730],
    "worse.minilm.wiki": [0.670, 0.673, 0.670],
    "alike.minilm.wiki": [0.701, 0.702, 0.701],
    "unsteady.minilm.wiki": [0.690, 0.760, 0.700],
}
NAMES = {
    "models": {
        "BERT": {"representation": "plain", "mixing_weight": 0, "layers": "last"},
        "RE": {"representation": "random", "mixing_weight": 0, "layers": "static"},
    },
    "measures": {
        name: {"kind": "sts", "tasks": tasks, "aggregation": "all", "metrics": ["spearman"], "scale": 100,
               "paper_tasks": None}
        for name, tasks in (("STS", None), ("STS a", ["a"]))
    },
    "weightings": {"avg": "avg.", "idf": "idf^T"},
    "encoder": "MiniLM",
    "postprocessings": {"none": ""},
}  # fmt: skip
SHOWN = {
    "title": "Toy", "source": "made up", "columns": "models", "models": ["BERT", "RE"], "measures": ["STS"],
    "variants": [{"weightings": ["avg", "idf"], "postprocessings": ["none"]}], "digits": 1,
}  # fmt: skip


PLOT = {"kind": "variant_scatter", "x": "STS", "y": "STS a", "note": None, "correlation": False} | {
    key: SHOWN[key] for key in ("title", "models", "variants")
}


def claim(ours, theirs, expects="higher", heading="A", table="toy", **changes):
    sides = {"ours": {"run": ours, "heading": heading}, "theirs": {"run": theirs, "heading": heading}}
    return HeldClaim.model_validate(
        {
            "paper": "toys",
            "name": "one",
            "where": "Table 1",
            "says": "Ours is so.",
            "expects": expects,
            "printed": {"ours": 70.5, "theirs": None},
            "compared": {"table": table} | sides,
        }
        | changes
    )


def cells(rows):
    """A table in which every cell has a value, but for one gap."""
    return pa.Table.from_pylist(
        [{"run": run, "heading": heading, "mean": mean, "note": note, "labels": [f"of {run}"]}
         for run, heading, mean, note in rows],
        schema=TABLE,
    )  # fmt: skip


def written(path, table, rule, settings, **wildcards):
    record = job_record(rule, settings=settings, inputs={}, outputs=[path], wildcards=wildcards)
    write_table(path, table, record)
    return path


def drawn(representation, weighting, task, value, draw=0, layers="last"):
    return {
        "representation": representation, "mixing_weight": 0.0, "draw": draw, "layers": layers,
        "weighting": weighting, "postprocess": "none", "kind": "sts", "task": task, "aggregation": "all",
        "metric": "spearman", "value": value, "n": 10, "note": None,
    }  # fmt: skip


@pytest.fixture
def material(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    gold = random.uniform(0, 5, 120)
    cosine = {"frozen_cls.minilm": gold + random.normal(0, 3, 120), "frozen_avg.minilm": gold / 5}
    pairs = {
        (run, "sts"): pa.table([["a"] * 120, [""] * 120, gold, values], schema=SIMILARITIES)
        for run, values in cosine.items()
    }
    files = {
        run: [ScoreFile(scored(run, seed, value), ()) for seed, value in enumerate(values, 1)]
        for run, values in SEEDS.items()
    }
    files |= {
        run: [ScoreFile(scored(run, 0, value), ())] for run, value in zip(cosine, (0.4, 0.9), strict=True)
    }
    table = cells([(run, heading, 70.0, None) for run in files for heading in ("A", "mean", "A over B")]
                  + [("simcse.minilm.wiki", "B", None, "no source of b")])  # fmt: skip
    rows = [drawn("plain", weighting, task, 0.5 + 0.01 * shift + bonus)
            for weighting, bonus in (("avg", 0.0), ("idf", 0.1))
            for shift, task in enumerate("abcd")]  # fmt: skip
    rows += [
        drawn("random", "avg", task, 0.3 + 0.001 * draw, draw, "static")
        for draw in range(5)
        for task in "abcd"
    ]
    shown = cells([(run, model, 1.0, None) for run in ("avg.", "idf^T") for model in ("BERT", "RE")])
    return Material(
        tables={
            "toy": written(tmp_path / "toy.parquet", table, "make_table", {"experiment": GRID}),
            "drawn": written(
                tmp_path / "drawn.parquet", shown, "tabulate_extraction", {"table": SHOWN, "names": NAMES}
            ),
            "scatter": written(
                tmp_path / "scatter.parquet", shown, "draw_figure", {"config": PLOT, "names": NAMES}
            ),
        },
        scores=files,
        pairs=pairs,
        extraction=[pa.Table.from_pylist(rows, schema=EXTRACTION)],
        labels={"plain": {"of plain"}, "random": {"of random"}},
        indexed={},
    )  # fmt: skip


def scored(run, seed, value):
    scores = [Score("a", "all", "spearman", value, 120), Score("b", "all", "spearman", value / 2, 120)]
    return score_table(scores, run=run, seed=str(seed), suite="sts")


def judge(material, *claims):
    found = [_compare(one, material, SIGNIFICANCE) for one in claims]
    return judged(claims, found, SIGNIFICANCE).to_pylist()


S, B = "simcse.minilm.wiki", "better.minilm.wiki"


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (claim(B, S), "supported"),
        (claim(S, B, "lower"), "supported"),
        (claim("worse.minilm.wiki", S), "contradicted"),
        (claim("unsteady.minilm.wiki", S), "undecided"),
        (claim("alike.minilm.wiki", S, "same", margin=0.5), "supported"),
        (claim(B, S, "same", margin=0.5), "contradicted"),
        (claim("unsteady.minilm.wiki", S, "same", margin=0.5), "undecided"),
        (claim(B, S, heading="mean"), "supported"),
    ],
)
def test_each_verdict_over_seeds(material, one, verdict):
    (row,) = judge(material, one)
    assert row["verdict"] == verdict
    assert (row["over"], row["n"]) == ("seeds", 3)
    assert row["low"] < row["difference"] < row["high"]
    assert row["p_value"] == row["corrected_p"]
    assert row["labels"] == sorted({f"of {one.compared.ours.run}", f"of {one.compared.theirs.run}"})


def test_a_supported_claim_in_numbers_worked_out_by_hand(material):
    """Differences of 3.0, 3.1 and 2.9 points: mean 3, sd .1, t = 3 / (.1 / root 3) with 2 degrees of freedom."""
    (row,) = judge(material, claim(B, S))
    assert row["difference"] == pytest.approx(3.0)
    assert row["high"] - row["low"] == pytest.approx(2 * 4.302653 * 0.1 / 3**0.5, rel=1e-5)
    assert row["p_value"] == pytest.approx(0.000370, rel=5e-3)
    assert row["reason"] == "3.00 higher (2.75 to 3.25) over 3 seeds"
    assert (row["printed_ours"], row["printed_theirs"], row["place"]) == (70.5, None, "Table 1")


def test_both_p_values_are_shown_and_the_corrected_one_decides(material):
    many = [claim("unsteady.minilm.wiki", S)] * 150
    alone, *_ = judge(material, claim(B, S), *many)
    assert alone["p_value"] < 0.05 < alone["corrected_p"]
    assert alone["corrected_p"] == pytest.approx(151 * alone["p_value"])
    assert alone["verdict"] == "undecided"
    assert alone["reason"].endswith("shown alone, but not among so many claims")


def test_what_is_undecided_says_what_would_have_been_seen(material):
    (row,) = judge(material, claim("unsteady.minilm.wiki", S))
    assert row["reason"].endswith(
        f"a true difference below {number(row['detectable'])} would mostly go unseen"
    )


def test_two_untrained_runs_are_compared_over_sentence_pairs(material):
    (row,) = judge(material, claim("frozen_avg.minilm", "frozen_cls.minilm"))
    ours, theirs = (material.pairs[run, "sts"] for run in ("frozen_avg.minilm", "frozen_cls.minilm"))
    assert (row["verdict"], row["over"], row["n"]) == ("supported", "pairs", 120)
    assert row["difference"] == pytest.approx(
        100 * observed(ours["gold"].to_numpy(), ours["cosine"].to_numpy(), theirs["cosine"].to_numpy())
    )
    assert row["low"] > 0


def test_pairs_of_other_sentences_are_refused(material):
    other = material.pairs["frozen_avg.minilm", "sts"].slice(1)
    changed = material._replace(pairs={**material.pairs, ("frozen_avg.minilm", "sts"): other})
    with pytest.raises(DataError, match=r"were scored on different pairs of a\. Rerun"):
        judge(changed, claim("frozen_avg.minilm", "frozen_cls.minilm"))


def test_an_untrained_run_stands_against_every_seed_of_a_trained_one(material):
    (row,) = judge(material, claim(S, "frozen_cls.minilm"))
    assert (row["verdict"], row["over"], row["n"]) == ("supported", "seeds", 3)
    assert row["difference"] == pytest.approx(30.1)


def test_one_value_on_each_side_is_subtracted_and_not_tested(material):
    (row,) = judge(material, claim("frozen_avg.minilm", "frozen_cls.minilm", heading="A over B"))
    assert (row["verdict"], row["p_value"], row["over"]) == ("undecided", None, "")
    assert row["reason"] == "equal; one value on each side, so that nothing is tested"


def test_seeds_of_the_run_that_another_experiment_asks_for_are_left_out(material):
    """Seed 4 is in no cell of the table, whose seeds are 1 to 3."""
    more = [*material.scores[B], ScoreFile(scored(B, 4, 0.99), ())]
    (row,) = judge(material, claim(B, S))
    assert judge(material._replace(scores={**material.scores, B: more}), claim(B, S)) == [row]
    (alone,) = judge(material._replace(scores={**material.scores, B: more}), claim(B, "frozen_cls.minilm"))
    assert alone["ours"] == pytest.approx((73.0 + 73.3 + 73.0) / 3)


def test_sides_are_shown_over_the_seeds_that_were_compared(material):
    """Seed 1 alone is common: 73.0 against 67.0, though the means of three are others."""
    worse = "worse.minilm.wiki"
    alone = material._replace(scores={**material.scores, worse: material.scores[worse][:1]})
    (row,) = judge(alone, claim(B, worse))
    assert (row["ours"], row["theirs"], row["difference"]) == pytest.approx((73.0, 67.0, 6.0))
    assert row["over"] == "" and row["p_value"] is None


@pytest.mark.parametrize(
    ("ours", "theirs", "over", "n"),
    [(("idf^T", "BERT"), ("avg.", "BERT"), "tasks", 4), (("avg.", "BERT"), ("avg.", "RE"), "draws", 5)],
)
def test_untrained_vectors_are_compared_over_draws_or_else_tasks(material, ours, theirs, over, n):
    sides = [{"run": run, "heading": heading} for run, heading in (ours, theirs)]
    compared = {"table": "drawn", "ours": sides[0], "theirs": sides[1], "differs": "four toy tasks"}
    (row,) = judge(material, claim("x", "y", compared=compared))
    assert (row["verdict"], row["over"], row["n"]) == ("supported", over, n)
    assert row["reason"].endswith("; four toy tasks")


def test_a_figure_of_variants_is_read_as_the_table_behind_it(material):
    sides = {"ours": {"run": "idf^T", "heading": "BERT"}, "theirs": {"run": "avg.", "heading": "RE"}}
    (row,) = judge(material, claim("x", "y", compared={"table": "scatter"} | sides))
    assert row["reason"] == "scatter of this study has no cell idf^T, BERT"  # of which measure?
    grouped = {side: cell | {"run": f"STS: {cell['run']}"} for side, cell in sides.items()}
    (row,) = judge(material, claim("x", "y", compared={"table": "scatter"} | grouped))
    assert (row["verdict"], row["over"], row["n"]) == ("supported", "draws", 5)
    assert row["ours"] == pytest.approx(61.5) and row["theirs"] == pytest.approx(30.2)
    assert row["labels"] == ["of plain", "of random"]


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (claim(S, B, compared="Nobody trains that here."), "Nobody trains that here."),
        (claim(S, B, table="another"), "this study makes no table another"),
        (claim(S, B, heading="B"), f"{S}, B: no source of b"),
        (claim("left_out", B), "toy of this study has no cell left_out, A"),
    ],
)
def test_what_is_not_compared_has_a_reason_and_no_numbers(material, one, reason):
    (row,) = judge(material, one)
    assert (row["verdict"], row["reason"]) == ("not run", reason)
    numbers = ("ours", "theirs", "difference", "low", "high", "n", "p_value", "corrected_p")
    assert {row[name] for name in numbers} == {None}
    assert judged([], [], SIGNIFICANCE).schema == CLAIMS


def test_what_is_not_compared_does_not_count_among_the_tests(material):
    tested, _ = judge(material, claim(B, S), claim(S, B, table="another"))
    assert tested["p_value"] == tested["corrected_p"]


def test_scores_of_the_extraction_study_are_told_from_those_of_runs_whatever_rule_made_them(
    tmp_path, monkeypatch
):
    """The isotropy of Wikitext is measured where its statistics are fitted."""
    monkeypatch.chdir(tmp_path)
    cell = pa.Table.from_pylist([drawn("plain", "avg", "wikitext", 0.5)], schema=EXTRACTION)
    files = [
        written(Path("run.parquet"), scored(S, 1, 0.5), "evaluate_sts", {}, run=S, suite="sts", seed="1"),
        written(
            Path("sts.parquet"), cell, "extract_scores", {}, representation="plain", kind="sts", task="a"
        ),
        written(Path("isotropy.parquet"), cell, "fit_wikitext", {}, representation="plain"),
    ]
    start = job_record("judge_claims", settings={}, inputs={}, outputs=[])
    found = _material(Job(start, {f"scores/{file}": file for file in files}, {}, {}))
    assert list(found.scores) == [S] and len(found.extraction) == 2 and list(found.labels) == ["plain"]
