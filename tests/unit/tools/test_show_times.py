import os
from pathlib import Path

import pytest

from tests.planning import ROOT, run
from workflow_scripts.errors import DataError
from workflow_scripts.tools.show_times import check_folder, stage_times, training_times

HEADER = "s\th:m:s\tmax_rss\tcpu_time\n"


def leave(file: Path, *rows: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(HEADER + "".join(f"{row}\n" for row in rows))


def test_times_are_summed_by_stage_and_by_run(tmp_path):
    leave(tmp_path / "train_encoder/simcse.a/seed1.tsv", "20.5\t0:00:20\t900.0\t15.0")
    leave(tmp_path / "train_encoder/simcse.a/seed2.tsv", "21.5\t0:00:21\t-\tNA")
    leave(tmp_path / "train_encoder/jtcse.b/seeds1_2_3.tsv", "60.0\t0:01:00\t2000.0\t55.0")
    (tmp_path / "train_encoder/jtcse.b/seed1.speed.parquet").touch()
    leave(tmp_path / "make_table/lab.tsv", "3.0\t0:00:03\tNA\t-")
    assert stage_times(tmp_path) == [
        ("make_table", 1, 3.0, 0.0, 0.0),
        ("train_encoder", 3, 102.0, 70.0, 2000.0),
    ]
    assert training_times(tmp_path) == [("jtcse.b", 3, 60.0, 55.0), ("simcse.a", 2, 42.0, 15.0)]


def test_seeds_that_ran_again_together_are_counted_once(tmp_path):
    run = tmp_path / "train_encoder/simcse.a"
    for age, (name, row) in enumerate({"seeds1_2": "30\t-\t10\t9", "seed2": "40\t-\t10\t8"}.items()):
        leave(run / f"{name}.tsv", row)
        os.utime(run / f"{name}.tsv", (age, age))
    assert training_times(tmp_path) == [("simcse.a", 2, 70.0, 17.0)]  # seed 1 has no other time
    leave(run / "seed1.tsv", "20\t-\t10\t7")
    assert training_times(tmp_path) == [("simcse.a", 2, 60.0, 15.0)]
    assert stage_times(tmp_path) == [("train_encoder", 2, 60.0, 15.0, 10.0)]
    leave(run / "seeds1_2.tsv", "35\t-\t10\t9")
    os.utime(run / "seed1.tsv", (9, 9))
    assert training_times(tmp_path) == [("simcse.a", 2, 35.0, 9.0)]


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    said = run(tmp_path, "-m", "workflow_scripts.tools.show_times", "benchmarks/nope", PYTHONPATH=str(ROOT))
    assert said.returncode == 1
    assert said.stderr.startswith("DataError: benchmarks/nope: no such folder."), said.stderr


def test_a_folder_without_times_is_one_line(tmp_path):
    (tmp_path / "figures").mkdir()
    with pytest.raises(DataError, match="no times of jobs"):
        check_folder(tmp_path)


def test_the_folder_of_all_studies_is_none_of_one(tmp_path):
    """Each study would be taken for a rule."""
    leave(tmp_path / "demo/train_encoder/simcse.a/seed1.tsv", "20.5\t0:00:20\t900.0\t15.0")
    with pytest.raises(DataError, match="no times of jobs"):
        check_folder(tmp_path)
    check_folder(tmp_path / "demo")


@pytest.mark.parametrize("content", [b"s\tmax_rss\nabc\t1\n", b"\xff\xfe"])
def test_a_file_that_is_not_snakemakes_is_one_line(tmp_path, content):
    (tmp_path / "make_table").mkdir()
    (tmp_path / "make_table/lab.tsv").write_bytes(content)
    with pytest.raises(DataError, match=r"lab\.tsv: .* Delete it"):
        stage_times(tmp_path)


def test_a_pipe_gets_whole_names(tmp_path):
    name = f"simcse.minilm_mlm.{'wiki_extract' * 5}"
    leave(tmp_path / f"train_encoder/{name}/seed1.tsv", "20.5\t0:00:20\t900.0\t15.0")
    said = run(tmp_path, "-m", "workflow_scripts.tools.show_times", str(tmp_path), PYTHONPATH=str(ROOT))
    assert name in said.stdout
    assert "1 jobs: 0.01 hours in all, 0.00 hours of processors" in said.stdout


def test_a_study_without_trainings_has_no_times_of_them(tmp_path):
    leave(tmp_path / "make_table/lab.tsv", "3.0\t0:00:03\t100.0\t2.0")
    assert training_times(tmp_path) == []
