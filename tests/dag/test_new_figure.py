"""A new figure is one module and its caption: nothing else names it."""

from tests.planning import copy_tree, planned_by_figure

MODULE = """
NEEDS = Needs(inputs={"table": "<results>/tables/{experiment}.parquet"})
"""


def test_a_module_and_a_caption_are_drawn_for_every_experiment_and_shown(tmp_path):
    folder = copy_tree(tmp_path)
    before = planned_by_figure(folder)
    (folder / "workflow_scripts/figures/score_bars.py").write_text(MODULE)
    (folder / "resources/captions/score_bars.rst").write_text("Scores as bars.\n")
    assert planned_by_figure(folder) == before | {"draw_figure:score_bars": 1}
