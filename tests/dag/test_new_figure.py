"""A new figure is its settings, one module and its caption: nothing else names it."""

from tests.planning import DEMO, copy_tree, snakemake

SETTINGS = """
from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs

NEEDS = Needs(inputs={"table": "<results>/tables/{experiment}.parquet"})
Config = Settings
"""
MODULE = "from workflow_scripts.settings.figures.score_bars import NEEDS as NEEDS\n"


def test_a_module_and_a_caption_are_drawn_for_every_experiment_and_shown(tmp_path):
    folder = copy_tree(tmp_path)
    (folder / "workflow_scripts/settings/figures/score_bars.py").write_text(SETTINGS)
    (folder / "workflow_scripts/figures/score_bars.py").write_text(MODULE)
    (folder / "resources/captions/score_bars.rst").write_text("Scores as bars.\n")
    code, printed = snakemake(folder, "-n", "--configfile", DEMO)
    assert code == 0 and "results/demo/figures/demo/score_bars.svg" in printed
