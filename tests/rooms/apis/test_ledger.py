"""The ledger: what is written stays, is checked, is asked once, and can be mended and moved."""

import os
import random
import shutil
import sqlite3
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import doc_blocks
from workflow_scripts.apis.ledger import ApiRequest, Ledger, Row
from workflow_scripts.errors import ApiError, DataError


def request(number):
    return ApiRequest("google", "", "en", "fr", f"text {number}")


def row(number, answer=None, status="usable", **more):
    return Row(request(number), f"answer {number} " * 5 if answer is None else answer, status, **more)


def answers_in(ledger, numbers):
    found = ledger.find([request(number) for number in numbers])
    return {row.request.text: row.answer for row in found.values()}


def test_a_row_is_stored_in_plain_text_with_all_attributes(tmp_path):
    asked = ApiRequest("openai", "deepseek-chat", "", "", "Write.", '{"seed": 7}')
    kept = Row(asked, "Said.", "usable", cost_usd=0.25, attributes='{"endpoint": "http://one"}')
    with Ledger(tmp_path / "deep/answers.sqlite") as ledger:
        dated = ledger.save([kept, row(1, "", "rejected", reason="empty")])
    assert dated[0]._replace(asked_at="") == kept
    assert dated[0].asked_at.endswith("Z")
    with Ledger(tmp_path / "deep/answers.sqlite") as ledger:
        found = ledger.find([asked, request(1), request(2)])
    assert found == {asked.key: dated[0], request(1).key: dated[1]}
    with sqlite3.connect(tmp_path / "deep/answers.sqlite") as database:
        stored = database.execute("SELECT text, answer FROM requests WHERE engine = 'openai'")
        assert stored.fetchall() == [("Write.", "Said.")]


@given(
    st.lists(st.text(max_size=4), min_size=6, max_size=6),
    st.lists(st.text(max_size=4), min_size=6, max_size=6),
)
@settings(max_examples=50)
def test_requests_have_one_key_if_and_only_if_they_are_equal(one, other):
    assert (ApiRequest(*one).key == ApiRequest(*other).key) == (one == other)


def test_many_rows_are_saved_at_once_and_the_latest_counts(tmp_path):
    """Many rows are saved at once and a later one takes the place of an earlier one."""
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        ledger.save([row(number, None, "failed") for number in range(1200)])
        ledger.save([row(number, "said") for number in range(1200)])
        assert answers_in(ledger, range(1300)) == {f"text {n}": "said" for n in range(1200)}


# Rates and budgets


def test_a_rate_is_one_for_all_processes(tmp_path, monkeypatch):
    monkeypatch.setattr("workflow_scripts.apis.ledger.time", SimpleNamespace(time=lambda: 1000.0))
    with Ledger(tmp_path / "answers.sqlite") as one, Ledger(tmp_path / "answers.sqlite") as two:
        waits = [ledger.rate_limit("google", 10, None, 8) for ledger in (one, two) * 3]
    assert waits == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5])


def test_the_budget_of_a_day_is_one_for_all_processes(tmp_path, monkeypatch):
    """The budget of a day is one for all processes, and is new the next day."""
    monkeypatch.setattr("workflow_scripts.apis.ledger.now", lambda: "2026-01-01T00:00:00Z")
    with Ledger(tmp_path / "answers.sqlite") as one, Ledger(tmp_path / "answers.sqlite") as two:
        for ledger in (one, two, one):
            assert ledger.rate_limit("google", None, 3, 8) == 0
        with pytest.raises(ApiError, match=r"google: the limit per_day of 3 requests is reached"):
            two.rate_limit("google", None, 3, 8)
        assert two.rate_limit("another", None, 3, 8) == 0
        monkeypatch.setattr("workflow_scripts.apis.ledger.now", lambda: "2999-01-01T00:00:00Z")
        assert two.rate_limit("google", None, 3, 8) == 0


def test_the_next_day_has_a_budget_as_large(tmp_path, monkeypatch):
    monkeypatch.setattr("workflow_scripts.apis.ledger.now", lambda: "2026-01-01T00:00:00Z")
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        ledger.rate_limit("google", None, 2, 8)
        monkeypatch.setattr("workflow_scripts.apis.ledger.now", lambda: "2026-01-02T00:00:00Z")
        for _ in range(2):
            ledger.rate_limit("google", None, 2, 8)
        with pytest.raises(ApiError, match=r"of 2 requests is reached \(day 2026-01-02 UTC\)"):
            ledger.rate_limit("google", None, 2, 8)


def test_a_clock_that_was_ahead_makes_nobody_wait(tmp_path, monkeypatch):
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        for moment, expected in ((90_000.0, 0), (1000.0, 0.8), (1000.0, 0.8), (1005.0, 0)):
            clock = SimpleNamespace(time=lambda now=moment: now)
            monkeypatch.setattr("workflow_scripts.apis.ledger.time", clock)
            assert ledger.rate_limit("google", 10, None, 8) == pytest.approx(expected)


# Other users


def test_an_empty_or_foreign_file_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "empty.sqlite").touch()
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        database.execute("CREATE TABLE mine (x)")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for name, found in (("empty", "empty"), ("other", "another database")):
        with pytest.raises(DataError, match=rf"{name}\.sqlite: {found}, not a ledger.*Restore a copy"):
            Ledger(tmp_path / f"{name}.sqlite")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_ledger_and_its_locks_are_as_open_as_their_folder(tmp_path):
    umask = os.umask(0o077)
    try:
        for mode, files in ((0o770, 0o660), (0o755, 0o644), (0o700, 0o600), (0o1777, 0o644)):
            folder = tmp_path / f"{mode:o}"
            folder.mkdir()
            folder.chmod(mode)
            with Ledger(folder / "answers.sqlite") as ledger, ledger.asking("google", "here"):
                modes = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}
            assert modes == {"answers.sqlite": files, "answers.sqlite.google.lock": files}
    finally:
        os.umask(umask)


def as_another_user(do, *groups):
    """What a function returns, as text, in a child process of a user with umask 077 and some groups."""
    read, write = os.pipe()
    if not (child := os.fork()):
        os.setgroups(groups)
        os.setgid(34568)
        os.setuid(34568)
        os.umask(0o077)
        try:
            os.write(write, str(do()).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as said:
        return said.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as other users")
@pytest.mark.parametrize(("mode", "shared"), [(0o770, True), (0o755, False)])
def test_users_of_one_group_share_a_ledger(mode, shared):
    """Users of one group share a ledger if its folder is theirs."""
    with TemporaryDirectory() as place:  # not below pytest's folder, which is closed to other users
        os.chown(place, -1, 34567)
        Path(place).chmod(mode)
        path, umask = Path(place, "answers.sqlite"), os.umask(0o077)
        try:
            with Ledger(path) as ledger, ledger.asking("google", "here"):
                ledger.save([row(1)])
        finally:
            os.umask(umask)
        theirs = ApiRequest("google", "", "en", "fr", "theirs")

        def write():
            with Ledger(path) as ledger:
                if not ledger.read_only:
                    with ledger.asking("google", "here"):
                        ledger.save([Row(theirs, "theirs", "usable")])
                return ledger.why_read_only if ledger.read_only else "written"

        alone = f"this user may not write {path}. Allow it with: chmod -R g+rwX {place}"
        assert as_another_user(write, 34567) == ("written" if shared else alone)
        with Ledger(path) as ledger:
            kept = ledger.find([theirs, request(1)])
        assert len(kept) == 1 + shared


# Damage


ANSWERS = {f"text {number}": f"answer {number} " * 5 for number in range(300)}


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "answers.sqlite"
    with Ledger(path) as ledger:
        ledger.save([row(number) for number in range(300)])
    assert [file.name for file in tmp_path.iterdir()] == ["answers.sqlite"]  # nothing is left in a log
    return path


def flip(path, position, bit):
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


def test_no_flipped_bit_changes_or_loses_an_answer_unnoticed(filled):
    """At 150 places: each is noticed, or lies where nothing is kept, and every answer is as it was."""
    generator = random.Random(0)
    content = filled.read_bytes()
    refusals = []
    for _round in range(150):
        flip(filled, generator.randrange(len(content)), generator.randrange(8))
        try:
            with Ledger(filled) as ledger:
                assert answers_in(ledger, range(300)) == ANSWERS
        except DataError as error:
            refusals.append(str(error))
        for left in filled.parent.iterdir():
            left.unlink()
        filled.write_bytes(content)
    assert len(refusals) > 75
    assert all(".recover" in refusal for refusal in refusals)


def test_the_whole_file_is_checked_before_an_answer_is_missed(filled):
    """The first find is content; the other would pay for an answer that is there, under a damaged key."""
    flip(filled, filled.read_bytes().index(request(7).key), 0)
    with Ledger(filled) as ledger:
        assert answers_in(ledger, [8]) == {"text 8": "answer 8 " * 5}
        with pytest.raises(DataError, match=r"index|checksum"):
            ledger.find([request(999)])


# Commands


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no program sqlite3")
def test_the_documented_commands_on_the_ledger_work(tmp_path):
    """The documented commands sum costs, list answers and forget them."""
    commands = [
        line
        for step in doc_blocks.steps((doc_blocks.ROOT / "docs/provenance.md").read_text())
        for line in step.text.splitlines()
        if line.startswith("sqlite3")
    ]
    failed = row(2, "Error 500", "failed", reason="error message")
    paid = [
        Row(ApiRequest("openai", "m", "", "", text), "Said.", "usable", cost_usd=0.5) for text in ("a", "b")
    ]
    with Ledger(tmp_path / "answers/answers.sqlite") as ledger:
        ledger.save([row(1), failed, row(3, "", "rejected", reason="empty"), *paid])
    summed, listed, _ = [
        subprocess.check_output(["bash", "-c", command], cwd=tmp_path, text=True) for command in commands
    ]
    assert "openai|m|||usable||2|1.0" in summed
    assert "google||en|fr|failed|error message|1|" in summed
    assert "answer = Error 500" in listed
    assert "text 3" in listed
    assert "text 1" not in listed
    with Ledger(tmp_path / "answers/answers.sqlite") as ledger:
        assert answers_in(ledger, range(4)) == {"text 1": row(1).answer, "text 2": "Error 500"}
