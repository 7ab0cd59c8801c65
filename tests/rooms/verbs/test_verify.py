"""Every file that is not as recorded is found, with its fault and the command that repairs it."""

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.rooms.verbs.conftest import RUNS, STUDY, TIMES, reseal
from tests.support.verb_answers import data, printed
from workflow_scripts.errors import DataError, command_for
from workflow_scripts.graph.notes import note_call
from workflow_scripts.provenance import artefacts

HISTORY = Path(STUDY, "runs/plain/seed1/history.parquet")


def findings(*columns):
    """Findings of verify in these columns; paths are relative to the study."""
    code, said = data("verify", STUDY)
    assert code == bool(said["findings"])
    assert said["good"] == (not code)
    short = [row | {"path": row["path"].removeprefix(f"{STUDY}/")} for row in said["findings"]]
    return [tuple(row[column] for column in columns or ("path", "kind")) for row in short]


def named(path):
    return path.relative_to(STUDY).as_posix()


def mend():
    return [row["command"] for row in data("verify", STUDY)[1]["commands"]]


def test_a_flipped_byte_is_found_in_every_file_and_in_no_other(root):
    generator = random.Random(0)
    every = sorted(
        path for path in Path(STUDY).rglob("*") if path.is_file() and ".checkpoints" not in str(path)
    )
    assert len(every) == 5 + 3 + 3 * 5  # tables and pages, an encoder, and what three runs left
    for path in every:
        content = path.read_bytes()
        for position in (0, generator.randrange(len(content))):
            damaged = bytearray(content)
            damaged[position] ^= 1 << generator.randrange(8)
            path.write_bytes(damaged)
            assert findings() == [(named(path), "changed")], position
        path.write_bytes(content[: len(content) // 2])
        assert findings() == [(named(path), "changed")], "cut short"
        path.unlink()
        assert findings() == [(named(path), "missing")]
        path.write_bytes(content)
    assert findings() == []


def test_commands_have_the_configuration_of_the_last_run(root):
    """Forced, for a deleted intermediate alone is not made again: Snakemake asks only for what the last file lacks."""
    Path(STUDY, "tables/main.parquet").write_bytes(b"")
    Path(STUDY, "runs/simcse/seed1/model/model.safetensors").write_bytes(b"")
    Path(STUDY, "my notes.txt").write_text("")
    Path("resources/prompt.txt").unlink()
    others = [f"rm -r '{STUDY}/my notes.txt'", "# restore resources/prompt.txt"]
    run, table = f"{STUDY}/runs/simcse/seed1/model/record.json", f"{STUDY}/tables/main.parquet"
    both = f"{run} {table}"
    assert mend() == [*others, f"snakemake --cores all --configfile CONFIG --forcerun {both} -- {both}"]
    note_call("study", ["config/mine.yaml", "more.yaml"], {"training": {"steps": 3}})  # files that are gone
    options = """--configfile config/mine.yaml more.yaml --config 'training={"steps": 3}'"""
    assert mend() == [*others, f"snakemake --cores all {options} --forcerun {both} -- {both}"]


def test_a_command_has_the_settings_with_which_its_file_was_made(root):
    """The last call may have been for one target, with other settings."""
    run, table = f"{STUDY}/runs/simcse/seed1/model/record.json", f"{STUDY}/tables/main.parquet"
    note_call("study", ["config/mine.yaml"], {}, [run, table])
    note_call("study", ["config/mine.yaml"], {"training": {"steps": 3}}, [run])
    note_call("study", ["config/other.yaml"], {})
    Path(table).write_bytes(b"")
    command = "snakemake --cores all --configfile config/mine.yaml"
    assert mend() == [f"{command} --forcerun {table} -- {table}"]
    Path(run).with_name("model.safetensors").write_bytes(b"")
    options = """--config 'training={"steps": 3}'"""
    assert mend() == [
        f"{command} {options} --forcerun {run} -- {run}",
        f"{command} --forcerun {table} -- {table}",
    ]


@pytest.mark.parametrize("has_run", [False, True])
def test_other_verbs_name_the_command_of_verify(root, has_run):
    """A verb that finds a damaged file names the command with which ``verify`` would repair it."""
    score, model = f"{STUDY}/scores/sts/suite/simcse/seed1.parquet", f"{STUDY}/runs/simcse/seed1/model"
    if has_run:
        note_call("study", ["my config/mine.yaml"], {"training": {"steps": 3}}, [score])
        note_call("study", ["config/other.yaml"], {})
    for file, damaged in ((score, Path(score)), (f"{model}/record.json", Path(model, "model.safetensors"))):
        content = damaged.read_bytes()
        for damage in (content[:60] + bytes([content[60] ^ 1]) + content[61:], content[:-20]):
            damaged.write_bytes(damage)
            (command,) = mend()
            assert ("CONFIG" in command) != has_run
            with pytest.raises(DataError) as refused:
                printed("diff", file, file.replace("seed1", "seed2"))
            assert f"Make it again: `{command}`" in str(refused.value)
        damaged.write_bytes(content)


def test_a_damaged_file_of_another_folder_is_made_there(root, monkeypatch, tmp_path):
    table = Path(STUDY, "scores/sts/suite/simcse/seed1.parquet")
    table.write_bytes(table.read_bytes()[:-20])
    note_call("study", ["config/mine.yaml"], {})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    call = f"snakemake --cores all --configfile CONFIG --forcerun {table} -- {table}"
    with pytest.raises(DataError) as refused:
        printed("explain", f"../{table}", "--cell", "metric=spearman")
    assert f"Make it again: `cd .. && {call}`, with its study's file as CONFIG." in str(refused.value)


@pytest.mark.parametrize("verb", [("verify",), ("lock",), ("claims", "--study"), ("watch",)])
def test_a_misspelt_study_has_the_nearest_name(root, verb):
    Path("logs/study").mkdir(parents=True)
    for path in ("stduy", "results/stduy"):
        with pytest.raises(DataError, match=r"stduy: no such (study|folder)\. Did you mean study\? "):
            printed(*verb, path)


def test_files_that_no_record_lists_are_foreign_but_not_a_lock(root):
    Path(STUDY, "provenance.lock.json").write_text("{}")
    left = ["tables/.main.parquet.x1y2.tmp", "runs/.model.ab.tmp/config.json", "page.html", ".DS_Store"]
    model = "runs/simcse/seed1/model/1_Pooling/table.parquet"
    for path in (Path(STUDY, name) for name in (*left, model)):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    Path(STUDY, "tables/link").symlink_to("nowhere")
    names = [".DS_Store", "page.html", "runs/.model.ab.tmp", model, left[0], "tables/link"]
    assert findings() == [(name, "foreign") for name in names]


def test_swapped_artefacts_are_foreign(root):
    one, two = (Path(STUDY, f"scores/sts/suite/simcse/seed{seed}.parquet") for seed in (1, 2))
    one.rename("aside")
    two.rename(one)
    Path("aside").rename(two)
    assert {(named(one), "foreign"), (named(two), "foreign")} <= set(findings())


def test_outputs_of_one_job_from_two_runs_of_it_are_stale(root, study):
    content = HISTORY.read_bytes()
    study.write_run("plain", 1, temperature=0.1)
    study.write_scores("plain", 1)
    study.write_table_of_scores()
    study.write_pages()
    assert findings() == []
    HISTORY.write_bytes(content)
    assert findings() == [(named(HISTORY), "stale")]


FORGED = {
    "a setting": ({"settings": {"method": {"temperature": 0.07}}}, "changed"),
    "wildcards": ({"wildcards": {"run": "simcse", "seed": "1"}}, "changed"),
    "a file outside the folder": ({"files": {"../x": "1"}}, "foreign"),
}


@pytest.mark.parametrize(("changes", "kind"), FORGED.values(), ids=FORGED)
def test_a_record_that_was_altered_and_sealed_anew_is_found(root, changes, kind):
    """By its key, or since it leads out of the folder."""
    reseal(HISTORY, **changes)
    assert (named(HISTORY), kind) in findings()


def hide_labels(_study):
    figure = Path(STUDY, "figures/main.svg")
    record = artefacts.read_record(figure).model_copy(update={"labels": []})
    artefacts.write_page(figure, artefacts.page_text(figure).decode(), record)


CHANGED = {
    "a table rewritten by another program": (
        lambda _: pq.write_table(pq.read_table(HISTORY).replace_schema_metadata(None), HISTORY),
        {(named(HISTORY), "changed", 0)},
    ),
    "an edited file from outside the results": (
        lambda _: Path("resources/prompt.txt").write_text("This sentence means"),
        {("corpora/wiki/train.parquet", "stale", 12)},
    ),
    "an upstream artefact that was made again": (
        lambda study: study.write_dataset(score=4.5),
        {(f"scores/sts/suite/{run}/seed{seed}.parquet", "stale", 3) for run, seed in RUNS},
    ),
    "a label that is hidden": (hide_labels, {("figures/main.svg", "unlabelled", 1), ("report.html", "stale", 0)}),
    "a report that is gone": (
        lambda _: Path(STUDY, "report.html").unlink(), {("report.html", "missing", 0)}
    ),
    "a deleted model folder, once": (
        lambda _: shutil.rmtree(Path(STUDY, "runs/simcse/seed1/model")),
        {("runs/simcse/seed1/model/record.json", "missing", 4)},
    ),
    "a table of times that is gone": (
        lambda study: study.write_times() or TIMES.unlink(), {(TIMES.as_posix(), "missing", 1)}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CHANGED.values(), ids=CHANGED)
def test_a_change_is_found_with_the_artefacts_it_affects(root, study, change, expected):
    """A change is found with the number of artefacts that it affects."""
    change(study)
    assert {*findings("path", "kind", "affects")} == expected


def test_damage_in_another_study_that_this_one_reads_is_found(root, study):
    model = Path("results/shared/encoder")
    with artefacts.writing_model_folder(
        model, study.made_by("fetch_encoder", [f"{model}/record.json"])
    ) as folder:
        (folder / "model.safetensors").write_bytes(b"weights")
    inputs = {"encoder": f"{model}/record.json"}
    study.write("count_words", "tables/b.parquet", pa.table({"a": [1]}), inputs=inputs)
    assert findings() == []
    (model / "model.safetensors").write_bytes(b"damaged")
    assert findings("path", "kind", "affects") == [(f"{model}/record.json", "changed", 1)]
    (model / "record.json").unlink()
    assert findings() == [(f"{model}/record.json", "missing")]


def test_studies_are_those_named_or_all(root):
    shutil.copytree(STUDY, "results/other")
    all_of_them = json.dumps(data("verify"))
    assert "results/other, results/study" in all_of_them
    assert data("verify", "study") == data("verify", STUDY)
    with pytest.raises(DataError, match="results/typo: no such study"):
        printed("verify", "results/typo")
    shutil.rmtree("results")
    with pytest.raises(DataError, match="results: no such study"):
        printed("verify")


@pytest.mark.parametrize("folder", [STUDY + "/runs", "elsewhere/study"])
def test_only_a_folder_directly_below_results_is_a_study(root, folder):
    """Paths in records begin with results/: below another folder each file would look foreign."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with pytest.raises(DataError, match=f"{folder}: no such study"):
        printed("verify", folder)


def test_a_file_is_no_study(root):
    with pytest.raises(
        DataError, match=r"report\.html: a file\. Give the folder of a study, results/<study>\."
    ):
        printed("verify", f"{STUDY}/report.html")


def test_a_table_that_is_missing_from_a_study_is_named(root):
    """The page of the study lists it among its inputs."""
    Path(STUDY, "tables/main.parquet").unlink()
    with pytest.raises(DataError, match=r"tables/main\.parquet: no such file\. Make it: "):
        printed("show", STUDY)


@pytest.mark.parametrize(
    "path",
    [
        "results/benchmarks/report.html",
        "results/demo/figures/results/record.json",
        "results/demo/scores/sts/benchmarks/seed1.parquet",
    ],
)
def test_a_study_a_grid_or_a_suite_may_be_called_results(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    call = f"`snakemake --cores all --configfile CONFIG -- {path}`, with its study's file as CONFIG."
    assert [command_for(path), command_for(Path(path).absolute())] == [call, call]
