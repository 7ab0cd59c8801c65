import gzip

import pytest

from workflow_scripts.data.readers.scored_pairs_tsv import Config, read
from workflow_scripts.errors import DataError


def test_pairs_without_a_score_are_dropped_and_counted(tmp_path):
    """O-02: the release of STS15 lists 8,500 pairs, of which 3,000 were judged."""
    path = tmp_path / "sts.tsv"
    path.write_text("subset\tscore\tsentence1\tsentence2\nA\t4.4\ta\tb\nA\t\tc\td\nB\t0\te\tf\n", "utf-8")
    table, dropped = read({"pairs": path}, Config())
    assert [tuple(row.values()) for row in table.to_pylist()] == [("A", "a", "b", 4.4), ("B", "e", "f", 0.0)]
    assert dropped == {"no score": 1}


def test_a_packed_file_without_subsets_has_empty_ones(tmp_path):
    path = tmp_path / "sts.tsv.gz"
    path.write_bytes(gzip.compress(b"part\tscore\tsentence1\tsentence2\ndev\t1\ta\tb\n"))
    assert read({"pairs": path}, Config()).table["subset"].to_pylist() == [""]


def test_a_score_that_is_no_number_is_named_by_its_line(tmp_path):
    path = tmp_path / "sts.tsv"
    path.write_text("score\tsentence1\tsentence2\n1\ta\tb\nx\ta\tb\n", "utf-8")
    with pytest.raises(DataError, match=r"sts\.tsv:3: score 'x'"):
        read({"pairs": path}, Config())
