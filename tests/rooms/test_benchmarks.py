"""The benchmarks run, their figures say where they come from, and documents quote them as they are."""

import subprocess
import sys

import pytest

from benchmarks import results
from tests.support.snakemake_plans import ROOT


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
def test_tests_and_benchmark_of_a_gpu_load_without_snakemake():
    code = "import sys; sys.modules['snakemake'] = None; import benchmarks.gpu, benchmarks.__main__, tests.support.small_methods"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
