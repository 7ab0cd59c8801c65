"""The benchmarks run, their figures say where they come from, and documents quote them as they are."""

import ast
import os
import subprocess
import sys

import pytest

from benchmarks import harness, results
from benchmarks.__main__ import NAMES
from benchmarks.harness import Measured, Timing, ratios
from tests.planning import ROOT


@pytest.fixture
def clock(monkeypatch):
    """A processor whose seconds pass only where a test says so."""
    now = [0.0]
    monkeypatch.setattr(harness, "_CLOCKS", {"cpu": lambda: now[0]})
    return now


def test_ways_take_turns_and_the_first_round_does_not_count(clock, capsys):
    turns = []

    def way(name, seconds):
        def work():
            turns.append(name)
            clock[0] += next(seconds)

        return work

    ways = {"ours": way("ours", iter([9, 1, 2, 4])), "peer": way("peer", iter([1, 2, 2, 2]))}
    seconds = Timing(3, small=False).interleaved(ways)
    assert turns == ["ours", "peer"] * 4
    assert seconds == {"ours": [1, 2, 4], "peer": [2, 2, 2]}
    assert ratios(seconds, "peer", "ours") == [2, 1, 0.5]


def test_a_ratio_is_printed_with_its_spread():
    printed = str(Measured("a", [1.5, 1.234, 10.04], "times-as-fast", "a-against-b"))
    assert printed == "bench a 1.50 times-as-fast a-against-b (1.23 to 10.0, 3 rounds)"


@pytest.fixture
def repository(tmp_path):
    """Two files in one commit; returns the folder and a function that commits what a call changes."""

    def git(*arguments):
        names = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *names, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    def change(name, text):
        (tmp_path / name).write_text(text)
        git("add", ".")
        git("commit", "-q", "-m", text)

    git("init", "-q")
    change("code.py", "1")
    change("other.py", "1")
    return tmp_path, change


def test_a_row_is_stale_once_what_it_measures_has_changed(repository):
    folder, change = repository
    row = results.row_of(Measured("a", [1.0, 3.0, 2.0], "x", "a-against-b"), ["code.py"], folder)
    assert (row.median, row.lowest, row.highest, row.rounds) == ("2.00", "1.00", "3.00", "3")
    assert all(row)
    change("other.py", "2")
    assert results.out_of_date(row, folder) is None
    (folder / "code.py").write_text("2")
    assert "has been edited" in results.out_of_date(row, folder)
    change("code.py", "3")
    assert "1 commits since" in results.out_of_date(row, folder)
    (folder / "benchmarks").mkdir()
    results.write([row, row._replace(name="b", code="other.py absent")], folder)
    a, reason, b, *more = results.report(results.read(folder).values(), folder)
    assert (a.split()[0], reason.split()[0], b.split()[0]) == ("a", "STALE:", "b")
    assert more

    assert "not in this history" in results.out_of_date(row._replace(commit="0" * 12), folder)


def test_every_kept_row_is_whole():
    rows = results.read(ROOT).values()
    assert rows
    for row in rows:
        assert all(row), row.name
        assert int(row.rounds) >= harness.ROUNDS
        assert float(row.lowest) <= float(row.median) <= float(row.highest)


@pytest.mark.parametrize("page", results.QUOTING, ids=str)
def test_documents_quote_the_figures_that_are_kept(page):
    """`make bench` and `python -m benchmarks --quote` put them there."""
    rows, text = results.read(ROOT), (ROOT / page).read_text("utf-8")
    quoted = results.quotes(text)
    assert len(quoted) >= 3
    assert set(quoted) <= set(rows)
    assert results.quoted(text, rows) == text
    wrong = {name: row._replace(median="77.7") for name, row in rows.items()}
    assert results.quoted(text, wrong).count("77.7") == len(quoted)


def test_every_benchmark_names_files_that_are_there():
    assert len(NAMES) > 9
    for name in NAMES:
        module = ast.parse((ROOT / f"benchmarks/{name}.py").read_text("utf-8"))
        (code,) = (ast.literal_eval(node.value) for node in module.body
                   if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CODE")  # fmt: skip
        assert code
        assert [path for path in code if not (ROOT / path).exists()] == [], name


def test_a_row_of_a_gpu_names_card_driver_and_pytorch_behind_the_processor(repository):
    folder, _change = repository
    plain, on_card = (
        results.row_of(Measured("a", [1.0], "x", "a-against-b", card=card), ["code.py"], folder)
        for card in ("", "H200, driver 580, PyTorch 2.11")
    )
    assert on_card.processor == f"{plain.processor}, H200, driver 580, PyTorch 2.11"


def test_tests_and_benchmark_of_a_gpu_load_without_snakemake():
    code = (
        "import sys; sys.modules['snakemake'] = None; import benchmarks.gpu, benchmarks.__main__, tests.walk"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.slow
def test_every_benchmark_runs():
    """In its small form; one that needs what is not here says so."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--small"],
        cwd=ROOT,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    printed = [line.split() for line in run.stdout.splitlines() if line.startswith("bench ")]
    skipped = [line for line in run.stderr.splitlines() if " skipped: " in line]
    assert len({name for _, name, *_ in printed}) > 17 - 2 * len(skipped)
    assert all(float(ratio) > 0 for _, _, ratio, *_ in printed)
