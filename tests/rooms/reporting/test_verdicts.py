"""Claims against a small study whose scores are known."""

import numpy as np
import pyarrow as pa
import pytest

from workflow_scripts.columns import SIMILARITIES, TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.significance import observed
from workflow_scripts.reporting.cells import brief
from workflow_scripts.reporting.verdicts import Material, compare, judged, verdict
from workflow_scripts.settings.grids import GridBlock
from workflow_scripts.settings.report import Claim, StudyClaims
from workflow_scripts.settings.report import Significance as Config

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


def claim(ours, theirs, expects="higher", heading="A", table="toy", **changes):
    cells = {"ours": ours, "heading": heading, "theirs": theirs, "their_heading": heading, "note": ""}
    return Claim.model_validate(
        {
            "paper": "toys",
            "claim": "one",
            "place": "Table 1",
            "says": "Ours is so.",
            "expects": expects,
            "margin": None,
            "printed_ours": 70.5,
            "printed_theirs": None,
            "compared": {"table": table} | cells,
        }
        | changes
    )


def row(run, heading, values, labels=(), repeats=None, note=None, **more):
    found = {"run": run, "heading": heading, "values": values, "repeats": repeats or [*range(len(values))]}
    found |= {"mean": float(np.mean(values)) if values else None, "seeds": len(values), "note": note}
    return dict.fromkeys(TABLE.names) | found | {"of_tasks": [], "labels": [f"of {run}", *labels]} | more


def by_cell(table, rows):
    return {(table, one["run"], one["heading"]): one for one in rows}


@pytest.fixture
def material():
    random = np.random.default_rng(0)
    gold = random.uniform(0, 5, 120)
    cosine = {"frozen_cls.minilm": gold + random.normal(0, 3, 120), "frozen_avg.minilm": gold / 5}
    pairs = {
        (run, "sts"): pa.table([["a"] * 120, [""] * 120, gold, values], schema=SIMILARITIES)
        for run, values in cosine.items()
    }
    seeds = {run: (values, [1, 2, 3]) for run, values in SEEDS.items()}
    seeds |= {"frozen_cls.minilm": ([0.4], [0]), "frozen_avg.minilm": ([0.9], [0])}
    shares = {"A": 100, "mean": 75, "A over B": 0}
    rows = [
        row(run, heading, [share * value or 2.0 for value in values], repeats=repeats)
        for run, (values, repeats) in seeds.items()
        for heading, share in shares.items()
    ]
    rows.append(row("simcse.minilm.wiki", "B", [], note="no source of b"))
    parts = [[50.0 + shift + bonus for shift in range(4)] for bonus in (0, 10)]
    drawn = [
        row(run, "BERT", [float(np.mean(part))], of_tasks=part, task="a, b, c, d")
        for run, part in zip(("avg.", "idf^T"), parts, strict=True)
    ]
    drawn.append(row("avg.", "RE", [30 + 0.1 * draw for draw in range(5)], task="a, b, c, d"))
    return Material(
        cells=by_cell("toy", rows) | by_cell("drawn", drawn),
        grids={"toy": GridBlock.strictly(GRID).experiment},
        pairs=pairs,
    )


def judge(material, *claims, scale="paper"):
    found = [compare(one, material, SIGNIFICANCE) for one in claims]
    return judged(StudyClaims(claims=claims, scale=scale), found, SIGNIFICANCE).to_pylist()


S, B = "simcse.minilm.wiki", "better.minilm.wiki"


def test_trainings_of_different_lengths_are_told(material):
    """Trainings of different lengths are told as the table has them."""
    lengths = {S: "16 steps", B: "6 steps", "worse.minilm.wiki": "16 steps"}
    (alike,) = judge(material, claim(B, S))
    one, same, frozen = judge(
        material._replace(trained={"toy": lengths}),
        claim(B, S),
        claim("worse.minilm.wiki", S),
        claim(B, "frozen_cls.minilm"),
    )
    assert "; 6 steps against 16 steps" in one["reason"]
    assert "steps" not in alike["reason"] + same["reason"]
    assert "; 6 steps against no training" in frozen["reason"]


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (claim(B, S), "supported"),
        (claim(S, B, "lower"), "supported"),
        (claim("worse.minilm.wiki", S), "contradicted"),
        (claim("unsteady.minilm.wiki", S), "undecided"),
        (claim("alike.minilm.wiki", S, "same", margin=0.5), "supported"),
        (claim(B, S, "same", margin=0.5), "contradicted"),
        (claim(S, B, "same", margin=0.5), "contradicted"),
        (claim("unsteady.minilm.wiki", S, "same", margin=0.5), "undecided"),
        (claim(B, S, heading="mean"), "supported"),
    ],
)
def test_each_verdict_over_seeds(material, one, verdict):
    """Claims that a study does not compare are not counted as tests."""
    row, _ = judge(material, one, claim(S, B, table="another"))
    assert (row["verdict"], row["over"], row["n"]) == (verdict, "seeds", 3)
    assert row["low"] < row["difference"] < row["high"]
    assert row["p_value"] == row["corrected_p"]
    assert row["labels"] == sorted({f"of {one.compared.ours}", f"of {one.compared.theirs}"})
    unseen = f"a true difference below {brief(row['detectable'])} would mostly go unseen"
    assert row["reason"].endswith(unseen) == (verdict == "undecided")


def test_a_demo_shows_what_was_compared_and_decides_nothing(material):
    (demo,), (row,) = (
        judge(material, claim("worse.minilm.wiki", S), scale=scale) for scale in ("demo", "paper")
    )
    assert row["verdict"] == "contradicted"
    assert demo["verdict"] == "undecided"
    assert demo["reason"] == f"{row['reason']}; a demo decides no claim"
    assert demo["p_value"] == row["p_value"]


def test_a_p_of_the_level_itself_shows_nothing():
    found = [verdict(1.0, p, "higher", 0, 0.05) for p in (0.05, 0.049, None)]
    assert found == ["undecided", "supported", "undecided"]


def test_a_supported_claim_in_numbers_worked_out_by_hand(material):
    """Differences of 3.0, 3.1 and 2.9 points: mean 3, sd .1, t = 3 / (.1 / root 3) with 2 degrees of freedom."""
    (row,) = judge(material, claim(B, S))
    assert row["difference"] == pytest.approx(3.0)
    assert row["high"] - row["low"] == pytest.approx(2 * 4.302653 * 0.1 / 3**0.5, rel=1e-5)
    assert row["p_value"] == pytest.approx(0.000370, rel=5e-3)
    assert row["reason"] == "3.00 higher (2.75 to 3.25) over 3 seeds"
    assert (row["printed_ours"], row["printed_theirs"], row["place"]) == (70.5, None, "Table 1")


def test_both_p_values_are_shown_and_the_corrected_one_decides(material):
    alone, *_ = judge(material, claim(B, S), *[claim("unsteady.minilm.wiki", S)] * 150)
    assert alone["corrected_p"] == pytest.approx(151 * alone["p_value"])
    assert alone["p_value"] < 0.05
    assert alone["verdict"] == "undecided"
    assert alone["reason"].endswith("significant by itself, but not after the correction for all claims")


def test_two_untrained_runs_are_compared_over_pairs(material):
    """Two untrained runs are compared over the same sentence pairs."""
    one = claim("frozen_avg.minilm", "frozen_cls.minilm")
    (row,) = judge(material, one)
    ours, theirs = (material.pairs[run, "sts"] for run in ("frozen_avg.minilm", "frozen_cls.minilm"))
    assert (row["verdict"], row["over"], row["n"]) == ("supported", "pairs", 120)
    gold, *cosines = (column.to_numpy() for column in (ours["gold"], ours["cosine"], theirs["cosine"]))
    assert row["difference"] == pytest.approx(100 * observed(gold, *cosines))
    assert row["low"] > 0
    changed = {**material.pairs, ("frozen_avg.minilm", "sts"): ours.slice(1)}
    with pytest.raises(DataError, match=r"were scored on different pairs of a\. Rerun"):
        judge(material._replace(pairs=changed), one)


def test_sides_are_shown_over_the_seeds_that_were_compared(material):
    """Seed 1 alone is common: 73.0 against 67.0, though the means of three are others."""
    alone = row("worse.minilm.wiki", "A", [67.0], repeats=[1])
    changed = {**material.cells, ("toy", "worse.minilm.wiki", "A"): alone}
    (found,) = judge(material._replace(cells=changed), claim(B, "worse.minilm.wiki"))
    assert (found["ours"], found["theirs"], found["difference"]) == pytest.approx((73.0, 67.0, 6.0))
    assert found["reason"] == "6.00 higher; fewer than three seeds in common: not tested"


def drawn_claim(ours, theirs):
    cells = dict(zip(("ours", "heading", "theirs", "their_heading"), (*ours, *theirs), strict=True))
    return claim("x", "y", compared={"table": "drawn", **cells, "note": "four toy tasks"})


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (claim(S, "frozen_cls.minilm"), ("supported", "seeds", 3, 30.1, "over 3 seeds")),
        (drawn_claim(("idf^T", "BERT"), ("avg.", "BERT")), ("supported", "tasks", 4, 10, "; four toy tasks")),
        (drawn_claim(("avg.", "BERT"), ("avg.", "RE")), ("supported", "draws", 5, 21.3, "; four toy tasks")),
        (
            claim("frozen_avg.minilm", "frozen_cls.minilm", heading="A over B"),
            ("undecided", "", 1, 0, "equal; one value on each side: not tested"),
        ),
    ],
)
def test_cells_are_compared_over_what_both_of_them_repeat(material, one, expected):
    """An untrained run stands against every seed of a trained one."""
    (row,) = judge(material, one)
    verdict, over, n, difference, ending = expected
    assert (row["verdict"], row["over"], row["n"]) == (verdict, over, n)
    assert row["difference"] == pytest.approx(difference)
    assert row["reason"].endswith(ending)
    assert (row["p_value"] is None) == (not over)


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
