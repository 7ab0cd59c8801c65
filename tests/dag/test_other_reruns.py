"""Changes of rules, resources, packages and dates bring back what depends on them; the demo again, as if finished."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.dag.test_exact_reruns import (
    DRAWN,
    JOBS,
    NOTHING,
    REPORT,
    SCORED_AGAIN,
    finished,  # noqa: F401  (a fixture)
)
from tests.planning import ROOT
from tests.planning import planned_by_figure as planned_jobs


@contextmanager
def replaced(file: Path, pattern: str, text: str) -> Iterator[None]:
    """A file with one part of it replaced, as long as it lasts; its date is then as it was."""
    before, date = file.read_text(), file.stat().st_mtime
    after, count = re.subn(pattern, text, before, count=1, flags=re.DOTALL)
    assert count == 1 and after != before
    file.write_text(after)
    try:
        yield
    finally:
        file.write_text(before)
        os.utime(file, (date, date))


# Rules


RULES = {
    rule: file.name
    for file in sorted((ROOT / "rules").glob("*.smk"))
    for rule in re.findall(r"^rule (\w+):", file.read_text(), re.MULTILINE)
}


@pytest.mark.parametrize("file", sorted({*RULES.values()}))
def test_a_comment_another_docstring_and_blanks_in_a_rule_rerun_nothing(finished, file):  # noqa: F811
    with replaced(finished / "rules" / file, r'\n    """', '\n    # a comment\n    """Another. '):
        assert planned_jobs(finished) == NOTHING
    with replaced(finished / "rules" / file, r"command\(", "command(  "):
        assert planned_jobs(finished) == NOTHING


@pytest.mark.parametrize(
    ("need", "other"), [(r"memory\(\d+", "memory(77"), (r'runtime="\w+', 'runtime="77h')]
)
def test_what_a_job_needs_decides_no_result(finished, need, other):  # noqa: F811
    with replaced(finished / "rules/train.smk", need, other):
        assert planned_jobs(finished) == NOTHING


# Resources


RESOURCES = {
    "resources/report/report.html.j2": REPORT,
    "resources/captions/learning_curves.rst": REPORT,
    "resources/captions/scatter.rst": NOTHING,  # the demo has none
    "resources/captions/figure.rst": NOTHING,  # of Snakemake's own report
    "resources/captions/study_report.rst": NOTHING,
    "resources/tokens/bert.json": {"fit_wikitext": 2} | SCORED_AGAIN,
    "resources/tokens/roberta.json": NOTHING,
    "resources/prompts/three_r_exemplars.txt": NOTHING,  # the demo picks its exemplars
    "resources/published/extraction_table6.csv": {"tabulate_extraction": 1, "judge_claims": 1} | REPORT,
    "resources/published/extraction_figure5.csv": REPORT,  # which counts all printed numbers
    "resources/published/jtcse_table1.csv": REPORT,
    "resources/ledger/jtcse.yaml": REPORT,
    "resources/published/means.yaml": NOTHING,
    "resources/laboratory/lab_sts.csv": NOTHING,
    "resources/README.md": NOTHING,
}


@pytest.mark.parametrize("file", RESOURCES)
def test_an_edited_resource_reruns_what_reads_it(finished, file):  # noqa: F811
    with replaced(finished / file, r"\Z", " "):
        assert planned_jobs(finished) == RESOURCES[file]


# Packages


PACKAGES = {
    "tqdm": set(),
    "huggingface-hub": set(),
    "pydantic": set(),
    "requests": set(),
    "snakemake": set(),
    "pytest": set(),
    "pandas": set(),  # no module imports it
    "matplotlib": set(DRAWN | REPORT),
    "torch": set(JOBS) - {"read_dataset", "fetch_encoder", "split_corpus", "count_words", "pick_exemplars"},
}


@pytest.mark.parametrize("package", PACKAGES)
def test_another_version_of_a_package_reruns_what_computes_with_it(finished, package):  # noqa: F811
    """A stand-in beside the pipeline, which Python finds before the one that is installed."""
    place = finished / f"{package.replace('-', '_')}-99.9.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 99.9\n")
    try:
        assert set(planned_jobs(finished)) == PACKAGES[package]
    finally:
        (place / "METADATA").unlink()
        place.rmdir()


# Dates


def files_of(folder: Path) -> list[Path]:
    skipped = {".snakemake", "__pycache__"}
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not skipped & set(path.parts)]


@pytest.mark.parametrize("days", [0, 400, -4000], ids=["now", "in the future", "long ago"])
def test_dates_decide_nothing(finished, days, record_property):  # noqa: F811
    files = files_of(finished)
    dates = {path: path.stat().st_mtime for path in files}
    assert len(files) > 400
    record_property("changes", len(files[::2]))
    for path in files[::2]:
        os.utime(path, (time.time() + days * 86_400,) * 2)
    try:
        assert planned_jobs(finished) == NOTHING
    finally:
        for path, date in dates.items():
            os.utime(path, (date, date))
