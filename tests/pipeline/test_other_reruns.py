"""Changes of rules, resources, packages and dates bring back what depends on them; the demo again, as if finished."""

import os
import re
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.pipeline.test_exact_reruns import (
    DRAWN,
    JOBS,
    JUDGED,
    NOTHING,
    REPORT,
    SCORED_AGAIN,
    finished,  # noqa: F401  (a fixture)
)
from tests.support.snakemake_plans import holding
from tests.support.snakemake_plans import planned_by_experiment as planned_jobs


def replaced(file: Path, pattern: str, text: str) -> AbstractContextManager[None]:
    """A file with one part of it replaced, as long as it lasts."""
    after, count = re.subn(pattern, text, file.read_text(), count=1, flags=re.DOTALL)
    assert count == 1
    assert after != file.read_text()
    return holding(file, after)


def test_comments_blanks_and_requests_rerun_nothing(finished):  # noqa: F811
    """Comments, docstrings, blanks and what a job asks for rerun nothing."""
    files = [file for file in (finished / "rules").glob("*.smk") if "\nrule " in file.read_text()]
    assert len(files) > 5
    with ExitStack() as edits:
        for file in files:
            edits.enter_context(replaced(file, r'\n    """', '\n    # a comment\n    """Another. '))
            edits.enter_context(replaced(file, r"JobSpec\(", "JobSpec(  "))
            edits.enter_context(
                replaced(file, r"\*\*job_resources\(gigabytes=\d+", "**job_resources(gigabytes=77")
            )
        assert planned_jobs(finished) == NOTHING


RESOURCES = {
    "resources/report/report.html.j2": REPORT,
    "resources/tokens/bert.json": {"fit_wikitext": 2} | SCORED_AGAIN,
    "resources/published/extraction_table6.csv": {"tabulate_extraction": 1} | JUDGED | REPORT,
}
UNREAD = (
    "tokens/roberta.json",
    "prompts/three_r_exemplars.txt",  # the demo picks its exemplars
    "laboratory/lab_sts.csv",
    "ledger/jtcse.yaml",
    "published/jtcse_table1.csv",  # of a table that the demo does not make
    "README.md",
)


@pytest.mark.parametrize("file", RESOURCES)
def test_an_edited_resource_reruns_what_reads_it(finished, file):  # noqa: F811
    with replaced(finished / file, r"\Z", " "):
        assert planned_jobs(finished) == RESOURCES[file]


def test_an_edited_resource_that_nothing_reads_reruns_nothing(finished):  # noqa: F811
    with ExitStack() as edits:
        for file in UNREAD:
            edits.enter_context(replaced(finished / "resources" / file, r"\Z", " "))
        assert planned_jobs(finished) == NOTHING


def test_a_missing_model_is_made_again(finished):  # noqa: F811
    """As a forced training leaves it that was killed, since Snakemake deletes a job's outputs before it starts."""
    model = next((finished / "results/demo/runs").glob("jtcse.*/seed1/model"))
    with ExitStack() as gone:
        for name in ("model/record.json", "model/modules.json", "history.parquet"):
            gone.enter_context(holding(model.parent / name, None))
        assert planned_jobs(finished)["train_encoder"] == 1


TAKEN_AWAY = {  # what a job that fails leaves missing behind results that are there
    "datasets/lee.parquet": "read_dataset",
    "encoders/minilm/record.json": "fetch_encoder",
    "corpora/wiki_extract/words.parquet": "count_words",
    "scores/sts/lee/simcse.minilm_mlm.wiki_extract/seed1.parquet": "evaluate_sts",
}


def test_what_a_failed_job_took_away_is_made_again(finished):  # noqa: F811
    """What a failed job took away is made again although everything made from it exists."""
    with ExitStack() as gone:
        for path in TAKEN_AWAY:
            assert (finished / "results/demo" / path).exists()
            gone.enter_context(holding(finished / "results/demo" / path, None))
        assert {*TAKEN_AWAY.values()} <= planned_jobs(finished).keys()


PACKAGES = [
    (["tqdm", "huggingface-hub", "pydantic", "requests", "snakemake", "pytest"], set()),
    (["matplotlib", "pandas", "seaborn"], {"make_table", "judge_claims", *DRAWN, *REPORT}),
    (["torch"], {*JOBS} - {"read_dataset", "split_corpus", "count_words"}),
]


@pytest.mark.parametrize(("packages", "reruns"), PACKAGES)
def test_another_version_of_a_package_reruns_its_users(finished, packages, reruns):  # noqa: F811
    """A stand-in beside the pipeline, which Python finds before the one that is installed."""
    places = {finished / f"{name.replace('-', '_')}-99.9.dist-info": name for name in packages}
    for place, name in places.items():
        place.mkdir()
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.9\n")
    try:
        assert set(planned_jobs(finished)) == reruns
    finally:
        for place in places:
            (place / "METADATA").unlink()
            place.rmdir()


def test_dates_decide_nothing(finished):  # noqa: F811
    """Some files are of now, some of the future and some of long ago."""
    skipped = {".snakemake", "__pycache__"}
    paths = [path for path in finished.rglob("*") if path.is_file() and not skipped & {*path.parts}]
    assert len(paths) > 400
    for number, path in enumerate(paths):
        os.utime(path, (time.time() + (0, 400, -4000)[number % 3] * 86_400,) * 2)
    assert planned_jobs(finished) == NOTHING
