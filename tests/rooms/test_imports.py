"""Snakemake loads the graph whenever it starts, and many jobs take a second: neither waits for slow packages."""

import pytest

from tests.support.snakemake_plans import ROOT, run_alone
from tests.support.training_jobs import module_of

CODE = ROOT / "workflow_scripts"
SLOW = {
    "datasets",
    "gensim",
    "matplotlib",
    "mteb",
    "openai",
    "sentence_transformers",
    "sklearn",
    "torch",
    "transformers",
}
"""Packages whose import takes half a second or more."""
QUICK = {
    "graph and settings": [
        ".".join(file.relative_to(CODE).with_suffix("").parts)
        for room in ("graph", "settings")
        for file in (CODE / room).rglob("*.py")
    ],
    "jobs without an encoder": [
        module_of(rule)
        for rule in (
            "count_words", "draw_claims", "draw_figures", "gather_round_trips", "judge_claims",
            "make_table", "measure_contamination", "pick_exemplars", "read_dataset", "split_corpus",
            "tabulate_extraction", "tabulate_times", "write_exemplars", "write_model_card", "write_report",
        )
    ],
}  # fmt: skip


@pytest.mark.parametrize("modules", QUICK.values(), ids=QUICK)
def test_what_is_loaded_often_loads_no_slow_package(modules):
    names = [f"workflow_scripts.{module}" for module in modules]
    load = f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
    done = run_alone(ROOT, "-c", f"{load}print(*sys.modules)")
    assert names[0] in done.stdout, done.stderr
    assert not SLOW & {*done.stdout.split()}
