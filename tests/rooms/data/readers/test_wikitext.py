import gzip

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.data.readers.wikitext import Config, read

LINES = """ \n = Heading = \n \n The first <unk> is 1 @.@ 5 m long . It was well @-@ known . No .\n = = Part = = \n One more , here .\n"""


def rows(parsed):
    return [tuple(row.values()) for row in parsed.table.to_pylist()]


def test_paragraphs_become_sentences_and_headings_go(tmp_path):
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(LINES.encode()))
    parsed = read({"train": tmp_path / "text.txt.gz"}, Config(unknown="[UNK]", min_characters=10))
    assert rows(parsed) == [
        ("The first [UNK] is 1.5 m long .", 0, 0),
        ("It was well-known .", 0, 1),
        ("One more , here .", 1, 0),
    ]
    assert parsed.dropped == {"blank": 2, "heading": 2, "under 10 characters": 1}


def test_the_hubs_files_are_columns_of_lines(tmp_path):
    pq.write_table(pa.table({"text": [f"{line}\n" for line in LINES.split("\n")]}), tmp_path / "a.parquet")
    parsed = read({"train": tmp_path / "a.parquet"}, Config(unknown=None, min_characters=1))
    assert [row[0] for row in rows(parsed)][:1] == ["The first <unk> is 1.5 m long ."]
    assert len(rows(parsed)) == 4
