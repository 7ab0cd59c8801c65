"""The configuration that verbs take: what they are given, or else that of the last run in this folder."""

import os
from pathlib import Path

import pytest

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.place import STUDIES, Call, note_call
from workflow_scripts.verbs.plan import call_of

RUNS = {"demo": Call(["config/demo.yaml"], {"offline": True}), "mine": Call(["mine.yaml"], {})}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which two studies ran, mine last."""
    monkeypatch.chdir(tmp_path)
    for date, (study, call) in enumerate(RUNS.items()):
        note_call(study, *call)
        os.utime(STUDIES / f"{study}.json", (date, date))
    return tmp_path


def test_without_words_it_is_that_of_the_last_run_or_of_the_last_of_a_study(folder):
    assert call_of([], []) == RUNS["mine"]
    assert call_of([], [], "demo") == RUNS["demo"]
    with pytest.raises(ConfigError, match=r"^other: has not run in this folder\. Give its configuration"):
        call_of([], [], "other")


def test_words_take_the_place_of_the_whole_last_call(folder):
    assert call_of(["a.yaml"], []) == Call(["a.yaml"], {})
    words = ["training={max_steps: 5}", "rate=1e-5", "offline=true", "name=x=y"]
    given = {"training": {"max_steps": 5}, "rate": 1e-5, "offline": True, "name": "x=y"}
    assert call_of([], words) == Call([], given)
    with pytest.raises(ConfigError, match=r"^--config offline: no '='\. Write KEY=VALUE\.$"):
        call_of([], ["offline"])


def test_where_nothing_ran_it_is_the_base_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call_of([], []) == Call([], {}) and not Path(".snakemake").exists()
