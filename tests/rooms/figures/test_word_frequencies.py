from pathlib import Path

import pyarrow as pa
import pytest

from tests.rooms.figures.conftest import FOOTNOTE, drawn, request_of
from workflow_scripts.columns.corpora import WORD_COUNTS
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.word_frequencies import compared_with_printed, points, printed_words
from workflow_scripts.provenance.closure import ROOT

PRINTED = ROOT / "resources/published/three_r_table5.csv"
WORDS = pa.Table.from_pylist(
    [
        dict.fromkeys(WORD_COUNTS.names)
        | {"rank": rank, "word": f"w{rank}", "count": 2000 - rank, "change_rate": rank / 1000, "peak": False}
        for rank in range(1, 401)
    ],
    schema=WORD_COUNTS,
)


def test_the_papers_words_stand_beside_ours_of_the_same_rank():
    table = compared_with_printed(WORDS, printed_words(PRINTED), 200)
    assert len(table) == 200
    rows = {row["rank"]: list(row.values())[1:] for row in table.to_pylist()}
    assert rows[103] == ["w103", 1897, 0.103, "second", 13874, 0.0105]
    assert rows[197] == ["w197", 1803, 0.197, "word not legible", 8143, None]
    assert rows[99] == ["w99", 1901, 0.099, None, None, None]


def test_a_grid_of_several_corpora_is_refused_in_words():
    files = [Path(f"results/demo/corpora/{corpus}/words.parquet") for corpus in ("wiki", "nli")]
    request = request_of("word_frequencies", {"words": 200}, inputs={"words": files, "printed": [PRINTED]})
    with pytest.raises(
        ConfigError, match=r"word_frequencies: .* train on wiki and nli, .* Leave the block out"
    ):
        points(request)


def test_the_figure_draws_both():
    table = compared_with_printed(WORDS, printed_words(PRINTED), 400)
    figure, found = drawn(table, request_of("word_frequencies", {"words": 400}), "word_frequencies")
    assert [[len(line.get_xdata()) for line in axes.lines] for axes in figure.axes] == [[400, 15], [400, 14]]
    assert {"3R, Table 5", FOOTNOTE} <= {*found}
