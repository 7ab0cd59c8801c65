"""Standard output of the tools: as wide as a terminal, or as a file can be."""

from workflow_scripts.audit.printing import console


def test_a_pipe_is_wider_than_a_terminal_and_as_wide_as_columns_says(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console().width == 240
    monkeypatch.setenv("COLUMNS", "100")
    assert console().width == 100
