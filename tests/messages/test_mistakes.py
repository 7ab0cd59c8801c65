"""Deliberate mistakes, each found before the first job, in one line: where, what was found, what to do.

The cases are in ``mistakes`` and in ``snakemake.yaml``, by title. Each says what a user writes and which lines are
``printed``. These are all lines; ``…`` stands for text that is not compared, such as the description of a setting.

In ``mistakes``, a user has changed the demo, of which the check is asked that the Snakefile makes whenever it is read:

    config: laid over the demo's configuration, as a file after --configfile is. A number as a key is an item of a list.
    grid: laid over ``config/experiments/demo.yaml`` in the same way, so that ``runs+`` adds runs.
    local_encoder: ``config.json`` of an encoder in the folder ``mine`` of local data.

In ``snakemake.yaml``, Snakemake is asked by a ``command``, with ``files`` in its folder.
"""

import contextlib
import json
import shlex
from pathlib import Path

import pytest

from tests.support.snakemake_plans import DEMO, ROOT, copy_tree, holding, settings_with, snakemake
from tests.support.written_mistakes import abridged, laid_over, printed_of, read_cases, sound_study
from workflow_scripts.data.hub import snapshot
from workflow_scripts.graph.needs import need_errors
from workflow_scripts.graph.study import Study

HERE = Path(__file__).parent
MISTAKES = read_cases(HERE.glob("mistakes/*.yaml"))
ASKED = read_cases([HERE / "snakemake.yaml"])


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """An environment without data and keys."""
    for name in ("SEMBLANCE_DATA", "SEMBLANCE_OFFLINE", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ROOT)
    return monkeypatch


def lines_of(folder, config=None, grid=None, local_encoder=None):
    """The lines that are printed of a case of ``mistakes``."""
    if local_encoder:
        (folder / "mine").mkdir()
        for name in ("model.safetensors", "tokenizer.json", "config.json"):  # only the last one is read
            (folder / "mine" / name).write_text(json.dumps(local_encoder))
    sound, grids = sound_study()
    changed = grids | {"demo": laid_over(grids["demo"], grid or {})}
    return printed_of(laid_over(sound, config or {}), changed, folder if local_encoder else None)


@pytest.mark.parametrize("case", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_printed_with_place_and_remedy(case, tmp_path):
    printed = case["printed"].splitlines()
    written = {key: value for key, value in case.items() if key != "printed"}
    assert printed
    assert abridged(lines_of(tmp_path, **written), printed) == printed


def test_only_an_ellipsis_stands_for_other_text():
    lines = ["k: 1; found 2 (Of x).", "k: 1\n; found 2."]
    assert abridged(lines, ["k: …; found 2 (…)."]) == ["k: …; found 2 (…).", lines[1]]
    assert abridged(lines, ["k: 1; found 2", "k: 1; found 3 (…)."]) == lines


UNUSED = {"adapt": {"base": "minilm", "corpus": "wiki_extract", "label": "x", "training": {"gpus": 2}}}
STUDIES = ("config/config.yaml", "config/minilm.yaml", "config/mpnet.yaml", DEMO)


@pytest.mark.parametrize("overlay", STUDIES)
def test_studies_of_this_repository_are_sound(overlay):
    assert printed_of(*sound_study(overlay)) == []


def test_a_printed_number_without_its_cell_is_found_before_jobs():
    sound, grids = sound_study("config/config.yaml")
    changed = laid_over(
        grids["layerattpooler_table5"], {"columns": {0: {"heading": "dev"}}, "headline": "dev"}
    )
    line, *_ = printed_of(sound, grids | {"layerattpooler_table5": changed})
    assert line.startswith(
        "config/experiments/layerattpooler_table5.yaml: layerattpooler_table5: BERT-base, DiffCSE"
    )
    assert line.endswith("STS-B dev: not in the grid layerattpooler_table5. Correct the row or the grid.")


def test_a_header_may_repeat_the_name_of_an_unread_column(tmp_path):
    columns = {name: name for name in ("sentence1", "sentence2", "score")}
    options = {"header": ["_", "_", *columns], "columns": columns}
    source = {"kind": "local", "reader": "delimited", "files": {"all": {"path": "x.tsv", "sha256": None}}}
    config = {"datasets": {"lee": {"sources": [source | {"options": options}]}}}
    assert lines_of(tmp_path, config) == []


def test_lines_may_be_held_out_if_pairs_choose_checkpoints(tmp_path):
    config = {"corpora": {"wiki_sentences": {"dev_sentences": 1000}}, "development": {"dataset": "stsb_dev"}}
    run = {"method": "simcse", "encoder": "minilm_mlm", "corpus": "wiki_sentences", "tag": "fine"}
    assert lines_of(tmp_path, config, {"runs+": [run]}) == []


def test_an_encoder_that_no_study_uses_may_be_wrong(tmp_path):
    """A study is held to no encoder that it does not use; the same block is a mistake in one that it uses."""
    assert lines_of(tmp_path, {"encoders": {"unused": UNUSED}}) == []
    assert len(lines_of(tmp_path, {"encoders": {"minilm_mlm": UNUSED}})) == 1


# Only what is asked for is required: keys, engines, data of the jobs that are to run.


def needs(*jobs, data_root=None, **changes):
    settings = settings_with("config/config.yaml", **changes)
    workplace = Study(settings, {}, ROOT).workplace.model_copy(update={"data_root": data_root})
    return [*map(str, need_errors(settings, jobs, workplace))]


POOL, TRIP_MADE = ("llms.deepseek_v3", "pool wiki1m_300"), ("translators.apertium", "corpus wiki_spa")
ON_DRIVE, TEXT = (
    ("encoders.consert_bert", "encoder consert_bert"),
    ("datasets.wiki_sentences", "dataset wiki_sentences"),
)
ONE_LOCAL = {"stsb": {
    "form": "pairs", "contract": {}, "about": {"origin": "x", "url": "https://example.org/data",
    "language": "en", "licence": "x", "citation": "x"}, "sources": [{"kind": "local", "reader": "delimited",
    "files": {"all": {"path": "here.tsv", "sha256": None}}, "options": {}}],
}}  # fmt: skip
BERT = ("encoders.bert_base", "encoder bert_base")
NEEDS = {
    "nothing": ([], None),
    "a key, once": ([POOL, POOL], "llms.deepseek_v3: pool wiki1m_300 needs it, but environment variable DEEPSEEK_API_KEY"),
    "a key of several jobs": ([POOL, ("llms.deepseek_v3", "pool wiki1m_176")], "llms.deepseek_v3: pool wiki1m_300 and 1 more need it,"),
    "an engine": ([TRIP_MADE], "translators.apertium: corpus wiki_spa needs apertium, which is not installed."),
    "data": ([TEXT], "datasets.wiki_sentences: no source found: no data root is set for corpus/wiki_sentences.txt.gz. Put it there"),
    "what the Hub has": ([("datasets.wiki1m", ""), ("datasets.lee", ""), BERT], None),
    "a folder on a drive": ([ON_DRIVE, ("encoders.esimcse_bert", "encoder esimcse_bert")], "encoders.consert_bert: no source found"),
}  # fmt: skip


@pytest.mark.parametrize(("jobs", "message"), NEEDS.values(), ids=NEEDS)
def test_what_a_job_needs_is_asked_for_by_that_job_alone(bare, jobs, message):
    bare.setenv("PATH", "/nowhere")
    bare.setattr("workflow_scripts.graph.source_plans.answers", lambda: True)
    found = needs(*jobs)
    assert len(found) == bool(message)
    assert all(line.startswith(message) for line in found)


def test_kept_answers_need_no_key_and_a_missing_file_is_named(bare, tmp_path):
    (found,) = needs(TEXT, data_root=tmp_path)
    assert f"{tmp_path}/corpus/wiki_sentences.txt.gz does not exist" in found
    (page,) = needs(("datasets.stsb", "dataset stsb"), data_root=tmp_path, datasets=ONE_LOCAL)
    assert "/here.tsv does not exist. Put it there (https://example.org/data), set data_root" in page
    bare.setenv("SEMBLANCE_OFFLINE", "1")
    assert needs(POOL) == []


def test_an_unmounted_data_root_is_no_gap(bare, tmp_path):
    """It matters only to a job that would read it: an optional dataset may be missing, but not its whole disk."""
    gap = ("datasets.sick_e", "dataset sick_e")
    assert needs(gap, data_root=tmp_path) == needs(data_root=tmp_path / "unmounted") == []
    (found,) = needs(gap, data_root=tmp_path / "unmounted")
    assert found.startswith(
        f"datasets.sick_e: {tmp_path}/unmounted, the folder of local data, does not exist,"
    )
    assert printed_of(*sound_study(), tmp_path / "unmounted") == []


def test_a_hub_that_does_not_answer_is_found_before_any_job(bare, tmp_path):
    """The Hub is not asked for copies on this machine, or for data that no job needs."""
    bare.setattr("workflow_scripts.graph.source_plans.answers", lambda: False)
    bare.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    (found,) = needs(BERT, ("datasets.lee", "dataset lee"))
    assert found.startswith("encoders.bert_base: no source found: no data root is set for ")
    host = "https://huggingface.co"
    assert (
        f"no network from this machine to {host}, which does not answer. Run make fetch on a machine" in found
    )
    sources = sound_study("config/config.yaml")[0]["encoders"]["bert_base"]["fetch"]["sources"]
    source = next(one for one in sources if one["kind"] == "hub")
    snapshot(source["repository"], source["revision"], "model").mkdir(parents=True)
    assert needs(BERT) == []


# Asked of Snakemake itself


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the repository to make mistakes in."""
    return copy_tree(tmp_path_factory.mktemp("mistakes"))


def answer_of(tree, command, files=None):
    """The exit code of a command of Snakemake, and all it printed."""
    with contextlib.ExitStack() as stack:
        for name, text in (files or {}).items():
            stack.enter_context(holding(tree / name, text))
        return snakemake(tree, *shlex.split(command)[1:])


@pytest.mark.parametrize("case", ASKED.values(), ids=ASKED)
def test_snakemake_stops_before_the_graph_in_these_lines(tree, case):
    printed = case["printed"].splitlines()
    written = {key: value for key, value in case.items() if key != "printed"}
    code, answer = answer_of(tree, **written)
    assert code == 1
    assert "Building DAG" not in answer
    assert "Traceback" not in answer
    assert [line for line in abridged(answer.splitlines(), printed) if line in printed] == printed


def test_words_on_the_command_line_are_read_as_in_a_file(tree):
    """Words on the command line are what they are in a file and braces no wildcards."""
    numbers = ["offline=true", "training={max_steps: 7, learning_rate: 1.0e-4}", "data_root=null"]
    words = ["report={page: {can_show: 'the set {a, b}'}}"]
    target = ("--", "./results/demo/report.html")
    code, printed = snakemake(
        tree, "-n", "--quiet", "all", "--configfile", DEMO, "--config", *numbers, *words, *target
    )
    assert code == 0, printed
