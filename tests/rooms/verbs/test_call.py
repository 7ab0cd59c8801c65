"""The configuration that verbs take: the one they are given, or else that of the last run in this folder."""

import os
import re

import pytest

from tests.support.snakemake_plans import DEMO
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.notes import STUDIES, Call, note_call
from workflow_scripts.verbs.plan import given_call, planned


def test_without_options_the_last_configuration_is_taken(tmp_path, monkeypatch):
    """Without options the configuration is that of the last run or of the last of a study."""
    monkeypatch.chdir(tmp_path)
    assert given_call([], []) == Call([], {})
    runs = {"demo": Call(["config/demo.yaml"], {"offline": True}), "mine": Call(["mine.yaml"], {})}
    for date, (study, call) in enumerate(runs.items()):
        note_call(study, *call)
        os.utime(STUDIES / f"{study}.json", (date, date))
    assert given_call([], []) == runs["mine"]
    assert given_call([], [], "demo") == runs["demo"]
    with pytest.raises(ConfigError, match=r"^other: has not run in this folder\. Add its configuration"):
        given_call([], [], "other")


def test_options_replace_the_whole_last_call():
    assert given_call(["a.yaml"], []) == Call(["a.yaml"], {})
    words = ["training={max_steps: 5}", "rate=1e-5", "offline=true", "name=x=y"]
    given = {"training": {"max_steps": 5}, "rate": 1e-5, "offline": True, "name": "x=y"}
    assert given_call([], words) == Call([], given)
    for word in ("offline", "training.max_steps=7", "1a=3"):
        with pytest.raises(ConfigError, match=rf"^--config {re.escape(word)}: .* Write KEY=VALUE, such as "):
            given_call([], [word])


def test_a_folder_that_can_only_be_read_is_one_line(tmp_path, monkeypatch):
    """Tests may run as root, whom permissions of a folder do not stop."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda place, wanted: wanted != os.W_OK)
    with pytest.raises(
        ConfigError, match=rf"^{tmp_path}: .* this one is read-only\. Copy it with its results"
    ):
        planned([], Call([DEMO], {}))
