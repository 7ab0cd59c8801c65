import pyarrow as pa
import pytest

from tests.rooms.figures.conftest import FOOTNOTE, shown
from workflow_scripts.columns.corpora import WORD_COUNTS
from workflow_scripts.errors import ConfigError
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


def test_the_papers_words_stand_beside_ours_of_the_same_rank(stored):
    points, picture, found = shown(
        "word_frequencies", {"words": 400}, {"words": [stored(WORDS)], "printed": [PRINTED]}
    )
    assert len(points) == 400
    rows = {
        row.pop("rank"): [*row.values()]
        for row in points.astype(object).where(points.notna(), None).to_dict("records")
    }
    assert rows[103] == ["w103", 1897, 0.103, "second", 13874, 0.0105]
    assert rows[197] == ["w197", 1803, 0.197, "word not legible", 8143, None]
    assert rows[99] == ["w99", 1901, 0.099, None, None, None]
    assert [len(axes.lines) for axes in picture.axes] == [2, 2]
    assert {"3R, Table 5", "10000", FOOTNOTE} <= {*found}


def test_a_grid_of_several_corpora_is_refused_in_words(tmp_path):
    files = [tmp_path / f"corpora/{corpus}/words.parquet" for corpus in ("wiki", "nli")]
    with pytest.raises(
        ConfigError, match=r"word_frequencies: .* train on wiki and nli, .* Leave word_frequencies out"
    ):
        shown("word_frequencies", {"words": 200}, {"words": files, "printed": [PRINTED]})
