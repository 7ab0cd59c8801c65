"""Settings are read whenever Snakemake starts, so that they import nothing that takes long to load."""

import subprocess
import sys
from pathlib import Path

from tests.planning import ROOT

HEAVY = ("torch", "transformers", "matplotlib", "sklearn", "scipy", "pandas", "pyarrow", "numpy")


def test_all_settings_are_imported_without_what_computes():
    files = sorted(Path(ROOT, "workflow_scripts/settings").rglob("*.py"))
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    script = f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
    script += f"print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert len(names) > 40
    assert done.stdout.strip() == "[]"
