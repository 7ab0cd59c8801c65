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


@pytest.mark.parametrize(
    ("file", "dirty"),
    [
        ("results/table.parquet", False),
        ("config/mine.yaml", False),  # a study of one's own
        ("workflow_scripts/module.py", True),
        ("workflow_scripts/untracked.py", True),
        ("rules/mine.smk", True),
    ],
)
def test_edited_and_untracked_code_is_dirty(repository, file, dirty):
    """Edited and untracked code is dirty and other files are not."""
    git_state = record.git_state.__wrapped__  # the other is kept for the life of a process
    assert git_state()[1] is False
    (repository / file).parent.mkdir(exist_ok=True)
    (repository / file).write_text("A = 2\n")
    commit, found = git_state()
    assert commit is not None
    assert found is dirty
