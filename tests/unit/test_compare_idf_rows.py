from workflow_scripts.compare_idf_rows import agreements


def test_the_papers_idf_rows_agree_with_ours_crosswise_and_not_straight():
    """O-86: idf over the task gives the rows that the paper calls idf^W, and the other way round."""
    found = {(one.ours, one.paper): one for one in agreements()}
    assert {one.cells for one in found.values()} == {35}
    for ours, paper in (("idf^T", "idf^W"), ("idf^W", "idf^T")):
        assert found[ours, paper].mean < 0.6
        assert found[ours, ours].mean > 1.5
    for name in ("avg.", "-biases"):  # as near as random draws allow
        assert found[name, name].mean < 0.7
