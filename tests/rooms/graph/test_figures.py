"""Which figures the demo has and what each reads, written out; and what a module's declaration can say."""

from dataclasses import replace

import pytest

from tests.support.snakemake_plans import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import read_grids
from workflow_scripts.graph.reporting import Figures
from workflow_scripts.settings.grids import GridBlock

OF_DEMO = [
    "alignment_uniformity",
    "cosine_density",
    "layer_attention",
    "learning_curves",
    "threshold_path",
    "token_similarity",
]


def asking(study, **grid):
    """The study with other keys of the demo's grid."""
    plain = read_grids(merged_config(DEMO), ROOT / "config")[0]["demo"] | grid
    return Figures(replace(study, blocks={**study.blocks, "demo": GridBlock.strictly(plain)}))


FROZEN = {"runs": 2, "token_similarity": None}
ASKED = {
    "the demo": ({}, OF_DEMO),
    "a block that asks for its figure": (
        {"scatter": {"x": "alignment", "y": "Spearman"}, "token_similarity": None},
        sorted({*OF_DEMO, "scatter"} - {"token_similarity"}),
    ),
    "no block": ({"alignment_uniformity": None}, OF_DEMO[1:]),
    "no suite": ({"suites": {}}, OF_DEMO[2:]),
    "no trained run": (FROZEN, ["alignment_uniformity", "cosine_density"]),
    "nothing": (FROZEN | {"suites": {}, "alignment_uniformity": None}, []),
}


@pytest.mark.parametrize(("grid", "drawn"), ASKED.values(), ids=ASKED)
def test_an_experiment_has_the_figures_of_its_inputs(study, grid, drawn):
    """An experiment has the figures whose inputs it makes and whose block it holds."""
    if "runs" in grid:
        grid = grid | {
            "runs": read_grids(merged_config(DEMO), ROOT / "config")[0]["demo"]["runs"][: grid["runs"]]
        }
    figures = asking(study, **grid)
    record = ["<results>/figures/demo/record.json"] if drawn else []
    assert sorted(figures.by_experiment.get("demo", ())) == drawn
    assert figures.drawn("demo") == record
    others = [f"<results>/figures/{name}/record.json" for name in ("extraction", "claims")]
    assert figures.drawn() == [*record, *others]


def test_words_are_those_of_the_text_that_was_translated(study):
    runs = [
        {"method": "simcse", "encoder": "minilm", "corpus": corpus}
        for corpus in ("wiki_spa", "wiki_sentences")
    ]
    figures = asking(study, runs=runs, baseline=None, word_frequencies={"words": 200}, token_similarity=None)
    files = figures.by_experiment["demo"]["word_frequencies"].files
    assert files["words"] == ["<results>/corpora/wiki_sentences/words.parquet"]


def asking_claims(study, papers):
    """The figures of the study with claims of other papers."""
    claims = study.settings.claims.model_copy(update={"papers": papers})
    return Figures(replace(study, settings=study.settings.model_copy(update={"claims": claims})))


def test_gains_are_drawn_from_verdicts_and_compared_tables(study):
    (figure,) = asking_claims(study, ["jtcse"]).by_experiment["claims"].values()
    tables = ["<results>/tables/demo.parquet"]
    assert figure.files == {"verdicts": ["<results>/claims.parquet"], "tables": tables}


def test_a_study_that_compares_no_claim_draws_no_gains(study):
    for papers, experiments in (([], ["demo", "extraction"]), (["jtcse"], ["extraction"])):
        settings = study.settings.model_copy(update={"experiments": experiments})
        blocks = {name: block for name, block in study.blocks.items() if name in experiments}
        other = replace(study, settings=settings, blocks=blocks)
        assert "claims" not in asking_claims(other, papers).by_experiment
