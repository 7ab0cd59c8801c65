"""A new figure is one module and its caption: nothing else names it."""

from tests.planning import DEMO, copy_tree, snakemake

MODULE = """
NEEDS = Needs(inputs={"table": "<results>/tables/{experiment}.parquet"})
"""


def test_a_module_and_a_caption_are_drawn_for_every_experiment_and_shown(tmp_path):
    folder = copy_tree(tmp_path)
    (folder / "workflow_scripts/figures/score_bars.py").write_text(MODULE)
    (folder / "resources/captions/score_bars.rst").write_text("Scores as bars.\n")
    code, printed = snakemake(folder, "-n", "--configfile", DEMO)
    assert code == 0 and "cosine_density, learning_curves, score_bars, threshold_path of demo" in printed
