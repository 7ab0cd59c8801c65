"""How far a run is, in lines that replace themselves on a terminal and are a few elsewhere."""

import os
import pty
import re
import subprocess
import sys

import pytest

from tests.planning import ROOT, run

SNAKEFILE = """
from workflow_scripts.graph.failures import report_failures
from workflow_scripts.graph.progress import show_progress

show_progress(workflow)
report_failures()
configfile: "a.yaml"

rule all:
    input: expand("{n}.txt", n=range(19))

rule make:
    output: "{n}.txt"
    log: "logs/{n}.log"
    shell: "if test {wildcards.n} = 3; then echo 'DataError: no' >{log}; exit 1; fi; touch {output}"
"""
QUIET = ("--cores", "1", "--keep-going", "--quiet", "host", "reason", "rules")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(f"{name[0]}: 1\n")
    return tmp_path


def test_a_pipe_gets_a_line_for_each_tenth_and_the_sentence_of_a_failed_job(folder):
    said = run(folder, "-m", "snakemake", *QUIET, "--configfile", "b.yaml", PYTHONPATH=str(ROOT)).stderr
    counts = [int(found[1]) for found in re.finditer(r"^(\d+) of 20 jobs done$", said, re.MULTILINE)]
    assert counts == [2, 4, 6, 8, 10, 12, 14, 16, 18]
    assert said.rstrip().endswith("DataError: no\n    log: logs/3.log")
    assert "extended by" not in said and "Select jobs" not in said and "Finished jobid" not in said


def test_without_a_word_of_quiet_snakemake_prints_what_it_prints(folder):
    said = run(folder, "-m", "snakemake", *QUIET[:5], PYTHONPATH=str(ROOT)).stderr
    assert "of 20 jobs done" not in said and said.count("Finished jobid") == 18


def on_a_terminal(folder):
    """What a terminal is sent."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    job = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *QUIET], cwd=folder, env=environment, stderr=theirs, stdout=theirs
    )
    os.close(theirs)
    sent = b""
    try:
        while part := os.read(ours, 1 << 16):
            sent += part
    except OSError:  # the other end is closed
        pass
    job.wait()
    return sent.decode()


def test_a_terminal_sees_lines_that_replace_themselves_and_nothing_of_them_at_the_end(folder):
    sent = on_a_terminal(folder)
    assert "18 of 20 jobs done" in sent and "\n  make 7" in sent.replace("\r", "")
    assert len(re.findall(r"\x1b\[1A\x1b\[2K", sent)) > 18  # up a line, and empty it
    last = sent.replace("\r", "").split("\x1b[2K")[-1]
    assert "jobs done" not in last and last.rstrip().endswith("log: logs/3.log")
