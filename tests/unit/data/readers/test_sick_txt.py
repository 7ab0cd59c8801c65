import pytest

from workflow_scripts.data.readers.sick_txt import Config, read
from workflow_scripts.errors import DataError

HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "train.txt").write_text(HEADER + "1\tA dog runs\tA dog sits\t3.6\tCONTRADICTION\n", "utf-8")
    (tmp_path / "trial.txt").write_text(HEADER + "2\tIt rains\tIt pours\t4.5\tNEUTRAL\n", "utf-8")
    return {"train": tmp_path / "train.txt", "dev": tmp_path / "trial.txt"}


def rows(parsed):
    return [tuple(row.values()) for row in parsed.table.to_pylist()]


def test_one_file_gives_relatedness_graded_labels_and_entailment(files):
    assert rows(read(files, Config(target="relatedness"))) == [
        ("", "A dog runs", "A dog sits", 3.6),
        ("", "It rains", "It pours", 4.5),
    ]
    assert rows(read(files, Config(target="graded"))) == [
        ("train", "A dog runs", "A dog sits", "3.6"),
        ("dev", "It rains", "It pours", "4.5"),
    ]
    assert rows(read(files, Config(target="entailment"))) == [
        ("train", "A dog runs", "A dog sits", "CONTRADICTION"),
        ("dev", "It rains", "It pours", "NEUTRAL"),
    ]


def test_a_score_that_is_no_number_is_named_by_its_line(files):
    files["dev"].write_text(HEADER + "2\ta\tb\t4.5\tNEUTRAL\n3\ta\tb\tNA\tNEUTRAL\n", "utf-8")
    with pytest.raises(DataError, match=r"trial\.txt:3: score 'NA' is not a number"):
        read(files, Config(target="relatedness"))
