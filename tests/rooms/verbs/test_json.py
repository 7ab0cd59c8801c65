"""The form of --json, which is the same in every verb."""

from unittest.mock import patch

import jsonschema
import pyarrow as pa
import pytest
import yaml

from tests.rooms.verbs.conftest import STUDY
from tests.rooms.verbs.test_claims import ROWS
from tests.rooms.verbs.test_stale import jobs
from tests.support.snakemake_plans import DEMO, ROOT, copy_tree, run
from tests.support.verb_answers import data, parts_of, printed
from workflow_scripts.__main__ import VERBS
from workflow_scripts.columns import CLAIMS, TABLE
from workflow_scripts.verbs import rebuild, stale

SCORES = f"{STUDY}/tables/main.parquet"
CELL = dict.fromkeys(TABLE.names) | {
    "run": "simcse", "heading": "A", "suite": "sts", "task": "a", "aggregation": "all", "metric": "spearman",
    "scale": 100.0, "digits": 2, "mean": float("nan"), "seeds": 1, "n": 3, "repeats": [1], "values": [1.0],
    "labels": [], "of_tasks": [],
}  # fmt: skip
CALLS = {
    "show": [[f"{STUDY}/tables/lab.parquet"]],
    "claims": [["--study", STUDY]],
    "explain": [[SCORES], [SCORES, "--cell", "run=simcse,seed=1"], [SCORES, "--into"]],
    "verify": [[STUDY], []],
    "stale": [[]],
    "diff": [[SCORES, SCORES], [SCORES, f"{STUDY}/tables/lab.parquet"]],
    "rebuild": [[SCORES]],
    "watch": [[STUDY, "--once"]],
    "lock": [[STUDY, "--to", "one.lock.json"], [STUDY, "--check", "one.lock.json"]],
}
"""Calls of verbs in the small study; those of another form, or that need a whole clone, have a test of their own."""


def test_every_verb_is_called():
    assert {*CALLS, "preflight", "schema"} == {*VERBS}


def compared(path, _call):
    change = {"section": "setting", "key": "a", "a": [1, {"b": 2}], "b": {}}
    return [
        {
            "path": str(path),
            "by": "make_table()",
            "contents": "differ",
            "record": "differs",
            "changes": [change],
        }
    ]


@pytest.mark.parametrize("verb", CALLS)
def test_a_row_is_a_flat_object_with_plain_keys(root, study, verb):
    """Also of a study with findings: a table that was made again and a file without a record."""
    settings = {"experiment": {"title": "A", "source": "B", "columns": [{"heading": "A"}], "rows": []}}
    study.write(
        "make_table", "tables/lab.parquet", pa.Table.from_pylist([CELL], schema=TABLE), settings=settings
    )
    tested = {"significance": {"alpha": 0.05}}
    verdicts = pa.Table.from_pylist(ROWS, schema=CLAIMS)
    study.write("judge_claims", "claims.parquet", verdicts, settings=tested)
    (root / "logs/study").mkdir(parents=True)
    asked = jobs()
    if verb != "lock":  # which writes nothing of a damaged study
        study.write_dataset(score=4.5)
        (root / STUDY / "my notes.txt").touch()
    with (
        patch.object(stale, "planned", lambda *_: [*asked.values()]),
        patch.object(rebuild, "rebuild", compared),
        patch.object(rebuild, "given_call", lambda *_: None),
    ):
        answers = [data(verb, *words)[1] for words in CALLS[verb]]
    assert answers
    assert all(answers)


def test_a_row_of_preflight_is_one_too(tmp_path):
    tree = copy_tree(tmp_path)
    (tree / "requirements.lock").symlink_to(ROOT / "requirements.lock")
    asked = run(tree, "-m", "workflow_scripts", "preflight", "--offline", "--json", "--configfile", DEMO)
    said = parts_of(asked.stdout)
    assert {"jobs_by_rule", "read_from", "checks"} <= said.keys()


# The schema


@pytest.fixture(scope="module")
def schemas():
    return {what: data("schema", what)[1] for what in ("configuration", "grid")}


def test_the_schema_is_one_document_with_and_without_json(schemas):
    assert printed("schema") == printed("schema", "--json")
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


FILES = [
    *((file, "configuration") for file in sorted(ROOT.glob("config/*.yaml"))),
    *((file, "grid") for file in sorted(ROOT.glob("config/experiments/*.yaml"))),
]


@pytest.mark.parametrize(("file", "what"), FILES, ids=[file.name for file, _ in FILES])
def test_an_editor_finds_no_mistake_in_a_file_of_the_repository(schemas, file, what):
    jsonschema.validate(yaml.safe_load(file.read_text()), schemas[what], jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    "mistake",
    [
        "trainng: {max_steps: 3}",
        "training: {max_stesp: 3}",
        "training: {max_steps: three}",
        "experiments+: mine",
        "training+: [3]",
        "methods: {simcse: {module: simcse, temprature: 0.1}}",
        "suites: {sts: {stsb: {datasets: stsb}}}",
    ],
)
def test_an_editor_finds_a_mistake_in_a_file_laid_over(schemas, mistake):
    validator = jsonschema.Draft202012Validator(schemas["configuration"])
    assert validator.is_valid(yaml.safe_load("experiments+: [mine]"))
    assert not validator.is_valid(yaml.safe_load(mistake))
