import io

import pytest

from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.tools import draw_rulegraph

DOT = """digraph snakemake_dag {
    node[shape=box];
	0[label = "all", color = "0.00 0.6 0.85", style="rounded"];
	1[label = "report", color = "0.00 0.6 0.85", style="rounded"];
	2[label = "train", color = "0.65 0.6 0.85", style="rounded"];
	3[label = "read", color = "0.46 0.6 0.85", style="rounded"];
	1 -> 0
	2 -> 1
	3 -> 1
	3 -> 2
	2 -> 2
}
"""


def test_edges_are_read_by_name_and_those_to_the_target_left_out():
    edges = {("train", "report"), ("read", "report"), ("read", "train"), ("train", "train")}
    assert draw_rulegraph.parse(DOT) == edges


def test_an_edge_that_a_longer_path_implies_is_left_out_and_a_loop_is_kept():
    reduced = draw_rulegraph.reduced(draw_rulegraph.parse(DOT))
    assert reduced == {("train", "report"), ("read", "train"), ("train", "train")}


def test_rules_of_one_file_share_a_frame(tmp_path):
    (tmp_path / "train.smk").write_text("rule train:\n    input: []\n\n\nrule unused:\n    input: []\n")
    stages = draw_rulegraph.stages(tmp_path)
    assert stages == {"train": ["train", "unused"]}
    drawn = draw_rulegraph.graph({("read", "train")}, stages)
    assert 'subgraph cluster_train { label="rules/train.smk"; color="#d5d8dd"; train }' in drawn
    assert "read -> train" in drawn


def test_without_graphviz_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingError, match="apt-get install graphviz"):
        draw_rulegraph.as_svg("digraph {}")


def test_a_rule_for_two_suites_is_drawn_as_that_of_the_first():
    dot = '0[label = "train"]\n1[label = "evaluate_lee_with_lee_space"]\n0 -> 1\n'
    assert draw_rulegraph.parse(dot) == {("train", "evaluate_sts")}


def test_a_rule_that_does_several_things_is_drawn_as_the_one_that_does_one():
    dot = DOT.replace('"train"', '"evaluate_lee_with_lee_space"').replace(
        '"report"', '"draw_figures_as_in_demo"'
    )
    assert ("evaluate_sts", "draw_figure") in draw_rulegraph.parse(dot)


@pytest.mark.parametrize("given", ["", "ConfigError: config/demo.yaml: no such file"])
def test_what_is_no_graph_replaces_no_picture(tmp_path, monkeypatch, given):
    picture = tmp_path / "rulegraph.svg"
    picture.write_text("the last one")
    monkeypatch.setattr("sys.argv", ["draw_rulegraph", str(picture)])
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    with pytest.raises(DataError, match=r"standard input: .* make rulegraph"):
        draw_rulegraph.main()
    assert picture.read_text() == "the last one"
