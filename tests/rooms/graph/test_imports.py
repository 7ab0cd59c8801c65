"""Settings and graph are loaded whenever Snakemake starts, and by every job of a cluster: nothing in them is slow."""

from tests.planning import ROOT, run

SLOW = ("torch", "transformers", "matplotlib", "sklearn", "scipy", "pandas", "pyarrow", "numpy")


def test_settings_and_graph_import_nothing_that_computes_or_draws():
    files = [
        file for room in ("settings", "graph") for file in (ROOT / "workflow_scripts" / room).rglob("*.py")
    ]
    names = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files}
    script = f"import importlib, sys\nfor name in {sorted(names)!r}: importlib.import_module(name)\n"
    done = run(ROOT, "-c", f"{script}print([name for name in {SLOW!r} if name in sys.modules])")
    assert len(names) > 60
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
