"""A commit that does not hold all the code is called dirty."""

import subprocess

import pytest

from workflow_scripts.provenance import record


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for folder in ("workflow_scripts", "config"):
        (tmp_path / folder).mkdir()
    (tmp_path / "workflow_scripts/module.py").write_text("A = 1\n")
    (tmp_path / ".gitignore").write_text("results\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    monkeypatch.setattr(record, "ROOT", tmp_path)
    return tmp_path


def state():
    commit, dirty = record.git_state.__wrapped__()  # which is kept for the life of a process
    assert commit is not None
    return dirty


def test_a_tree_as_committed_is_clean_whatever_runs_left_in_it(repository):
    (repository / "results").mkdir()
    (repository / "results/table.parquet").write_text("")
    assert state() is False


def test_a_study_of_ones_own_leaves_it_clean(repository):
    (repository / "config/mine.yaml").write_text("name: mine\n")
    assert state() is False


@pytest.mark.parametrize(
    "file", ["workflow_scripts/module.py", "workflow_scripts/untracked.py", "rules/mine.smk"]
)
def test_an_edited_module_and_one_that_was_never_added_make_it_dirty(repository, file):
    (repository / file).parent.mkdir(exist_ok=True)
    (repository / file).write_text("A = 2\n")
    assert state() is True
