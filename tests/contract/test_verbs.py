"""The front door: verbs, their help, their forms of output, and what a wrong call is told."""

import json
import math
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.snakemake_plans import ROOT, run
from tests.support.verb_answers import printed
from workflow_scripts.__main__ import VERBS, ask
from workflow_scripts.verbs.printing import Answer, PrintedTable, print_answer


@pytest.mark.parametrize("verb", VERBS)
def test_help_says_what_a_verb_is_with_an_example_that_it_takes(verb, capsys, monkeypatch):
    with pytest.raises(SystemExit) as stop:
        ask([verb, "--help"])
    shown = capsys.readouterr().out
    assert stop.value.code == 0
    assert shown.startswith(f"usage: python -m workflow_scripts {verb} ")
    assert "--json" in shown
    module = import_module(f"workflow_scripts.verbs.{verb}")
    assert module.__doc__
    assert len(module.__doc__.splitlines()[0]) < 121
    examples = re.findall(r"^  python -m workflow_scripts (.+?)(?: >.*)?$", shown, re.MULTILINE)
    assert examples
    monkeypatch.setattr(module, "answer", lambda **_: Answer())
    assert [ask(shlex.split(example)) for example in examples] == [0] * len(examples)
    assert {example.split()[0] for example in examples} == {verb}


def test_a_reader_that_has_read_enough_is_no_traceback():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "workflow_scripts"],
        cwd=ROOT,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_without_a_verb_all_are_listed():
    code, shown = printed()
    assert code == 0
    assert all(f"\n  {name} " in shown and summary in shown for name, summary in VERBS.items())
    assert printed("--help") == (0, shown)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verfy"], "error: unknown verb 'verfy'. Did you mean verify?"),
        (
            ["explain", "nosuch.parquet"],
            "DataError: nosuch.parquet: no such file, and no record below results lists one.",
        ),
        (
            ["show", "results/demo", "--csv", "--markdown"],
            "argument --markdown: not allowed with argument --csv",
        ),
        (["explain", "x", "--into", "--cell", "a=b"], "argument --cell: not allowed with argument --into"),
        (["lock", "--che", "x.json"], "unrecognized arguments: --che"),
    ],
)
def test_a_wrong_call_is_a_line_and_code_2(tmp_path, words, said):
    asked = run(tmp_path, "-m", "workflow_scripts", *words, PYTHONPATH=str(ROOT))
    assert asked.returncode == 2
    assert said in asked.stderr
    assert "Traceback" not in asked.stderr


ROWS = [{"name": "a, with a long tail", "n": 1234, "share": 0.123456}, {"name": "b", "n": 5, "share": None}]


def test_an_answer_is_a_table_or_json_with_an_exit_code(capsys):
    """An answer is a table and a verdict or JSON and an exit code."""
    found = Answer(
        "one found",
        good=False,
        parts=[PrintedTable("things", ROWS), PrintedTable("none", []), "a line"],
        facts={"more": 1},
    )
    assert print_answer(found, as_json=False) == 1
    lines = [line.split("│") for line in capsys.readouterr().out.splitlines()]
    assert [[cell.strip() for cell in line] for line in lines if len(line) > 1] == [
        ["a, with a long tail", "1,234", "0.1235"],
        ["b", "5", ""],
    ]
    assert [line for line, *more in lines if not more][-2:] == ["a line", "one found"]
    assert print_answer(Answer("fine"), as_json=True) == 0
    assert capsys.readouterr().out == '[{"part": "verdict", "good": true, "verdict": "fine"}]\n'
    assert print_answer(found, as_json=True) == 1
    verdict = {"part": "verdict", "good": False, "verdict": "one found", "more": 1}
    said = [*({"part": "things"} | row for row in ROWS), verdict]
    assert json.loads(capsys.readouterr().out) == said


def test_json_has_plain_keys_and_flat_values(capsys):
    row = {"memory, GB": math.inf, "USD at most": {"a": [1]}, "of": (Path("a"), None), "h": True}
    print_answer(
        Answer(parts=[PrintedTable("jobs by rule", [row]), PrintedTable("hidden", [{"a": 1}], shown=())]),
        as_json=True,
    )
    plain = {"memory_gb": None, "usd_at_most": '{"a": [1]}', "of": ["a", None], "h": True}
    assert json.loads(capsys.readouterr().out) == [
        {"part": "jobs_by_rule"} | plain,
        {"part": "hidden", "a": 1},
    ]
    print_answer(Answer(parts=[PrintedTable("hidden", [{"a": 1}], shown=())]), as_json=False)
    assert capsys.readouterr().out == ""
