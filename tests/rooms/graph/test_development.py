"""Caveats about development sets, when a run starts."""

import pytest

from tests.support.snakemake_plans import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import open_study
from workflow_scripts.graph.development import development_caveats

SOURCE = {
    "kind": "local",
    "files": {"all": {"path": "dev.tsv", "sha256": None}},
    "reader": "delimited",
    "options": {"columns": {"sentence1": "sentence1", "sentence2": "sentence2", "score": "score"}},
}
ABOUT = {"origin": "notes", "url": "not stated", "language": "en", "licence": "CC0", "citation": "nobody"}


def caveats(folder, pairs, dataset="mine", contract=None):
    text = "score\tsentence1\tsentence2\n" + "1\ta\tb\n" * pairs
    (folder / "dev.tsv").write_text(text)
    mine = {"form": "pairs", "sources": [SOURCE], "contract": contract or {}, "about": ABOUT}
    config = merged_config(DEMO)
    config["datasets"]["mine"] = mine
    config["development"]["dataset"] = dataset
    return [*development_caveats(open_study(config | {"data_root": str(folder)}, ROOT))]


@pytest.mark.parametrize(
    ("pairs", "contract", "most"), [(3, {}, 4), (98, {}, 99), (99, {}, None), (200, {"rows": 50}, 50)]
)
def test_a_small_development_set_is_told_before_anything_is_read(
    no_variables, tmp_path, pairs, contract, most
):
    """Of a file that no job has read, the lines are known, the heading among them."""
    told = caveats(tmp_path, pairs, contract=contract)
    said = f"development.dataset: mine selects checkpoints, but has at most {most} pairs, so chance decides."
    assert told == ([f"{said} Choose a dataset with 100 or more."] if most else [])


def test_a_development_set_that_is_scored_is_told(no_variables, tmp_path):
    (told,) = caveats(tmp_path, 3, dataset="lee")
    assert told == (
        "development.dataset: lee selects checkpoints and is scored by demo; these scores carry a note. "
        "Choose pairs that no table scores."
    )


def test_held_out_text_needs_no_word(no_variables, tmp_path):
    assert caveats(tmp_path, 3, dataset=None) == []
