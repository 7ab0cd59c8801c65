"""The benchmarks run, make the rows that are kept, and documents quote these as they are."""

import os
import re
import subprocess
import sys

import pytest

from benchmarks import results
from tests.support import toy_methods
from tests.support.snakemake_plans import ROOT, run

DATA = os.environ.get("SEMBLANCE_DATA")


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


@pytest.mark.slow
def test_every_benchmark_runs_and_makes_the_rows_that_are_kept():
    """On little material, where costs are those of some methods only; the steps of a GPU are tried on the CPU."""
    done = run(ROOT, "-m", "benchmarks", "--small", SEMBLANCE_GPU_TEST_DEVICE="cpu")
    assert done.returncode == 0, done.stderr[-3000:]
    made = {*re.findall(r"^bench (\w+) ", done.stdout, re.MULTILINE)}
    made |= {f"training_cost_{name}" for name in toy_methods.blocks()}
    without_data = {name for name in results.read(ROOT) if name.startswith("sts_evaluation_") and not DATA}
    assert {*results.read(ROOT)} - made == without_data


@pytest.mark.slow
def test_tests_and_benchmark_of_a_gpu_load_without_snakemake():
    code = "import sys; sys.modules['snakemake'] = None; import benchmarks.gpu, benchmarks.__main__, tests.support.small_methods"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
