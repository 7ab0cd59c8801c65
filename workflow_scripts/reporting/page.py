"""One self-contained HTML page about a study: its main comparison, claims, tables, figures, data; nothing to fetch.

Everything that comes from data is escaped when it is printed. Figures are images, in which no script runs. The page
forbids all scripts but its own, which sorts and filters tables and is named by its hash.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence

from workflow_scripts.columns.claims import CLAIMS, NOT_RUN
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.graph.runs import runs_of
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting import coverage, data_on_page
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.claim_text import p_text, printed_sides
from workflow_scripts.reporting.comparison import compare_runs
from workflow_scripts.reporting.data_on_page import Line, linked
from workflow_scripts.reporting.experiment import experiment_of
from workflow_scripts.reporting.labels import split_labels
from workflow_scripts.reporting.published import read_printed
from workflow_scripts.reporting.sections import environment, sections
from workflow_scripts.reporting.trainings import checkpoint_text
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.page import Config


def page(job: Job) -> str:
    """The page about the study of a job."""
    config = Config.parse(job.settings["page"], "report.page")
    called = Called.parse(job.settings["called"], "names")
    record, report = job.record(), job.outputs["report"]
    corpora = data_on_page.corpora(job, config.top_words)
    experiments = [experiment_of(path) for path in job.many("tables")]
    made = sections(job, called)
    led = next((section for section in made if section.headline), None)
    templates = environment()
    templates.filters |= {"policy_hash": _policy_hash, "checkpoint": checkpoint_text}
    return templates.from_string(job.inputs["template"].read_text("utf-8")).render(
        study=job.settings["name"],
        config=config,
        called=called,
        summary=summarise(experiments, sum(corpus["sentences"] for corpus in corpora)),
        labels=split_labels(record.labels),
        led=led,
        comparison=compare_runs(led.sheet, led.headline) if led else {},
        sections=made,
        datasets=data_on_page.datasets(job),
        corpora=corpora,
        pools=data_on_page.pools(job),
        development=data_on_page.development(job),
        claims=_claims(job),
        coverage=_coverage(job),
        papers=coverage.PAPERS,
        file=linked(report, report),
        commit=record.origin.commit,
        dirty=record.origin.dirty,
    )


def _policy_hash(script: str) -> str:
    """What a content security policy names an inline script by."""
    digest = b64encode(hashlib.sha256(str(script).encode()).digest()).decode()
    return f"'sha256-{digest}'"


def summarise(experiments: Sequence[Experiment], sentences: int) -> str:
    """A summary of the study in one sentence.

    Args:
        experiments: All of it.
        sentences: Those of its corpora.
    """
    named = [
        (name, run) for experiment in experiments for name, run in runs_of(experiment.model_dump()).items()
    ]
    runs = {name for name, _ in named}
    trained = {name for name, run in named if run.corpus}
    trainings = {(name, seed) for name, run in named if run.corpus for seed in run.seeds}
    tasks = {
        column.task for experiment in experiments for column in experiment.columns if hasattr(column, "task")
    }
    parts = [
        _counted(len(experiments), "experiment"),
        f"{_counted(len(runs), 'run')} ({len(runs) - len(trained)} frozen, {len(trained)} trained)",
        _counted(len(trainings), "training"),
        f"{_counted(len(tasks), 'task')} in tables",
        _counted(sentences, "training sentence"),
    ]
    return ", ".join(parts) + "."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _claims(job: Job) -> Line:
    """Claims that this study compares with their verdicts, and the others; empty where it is held to none."""
    for path in job.many("claims"):
        lines = [
            row
            | {
                "title": coverage.PAPERS.get(row["paper"], row["paper"]),
                "printed": printed_sides(row),
                "p": ""
                if row["p_value"] is None
                else f"{p_text(row['p_value'])} / {p_text(row['corrected_p'])}",
            }
            for row in read_table(path, CLAIMS).to_pylist()
        ]
        tested, others = (
            [line for line in lines if (line["verdict"] == NOT_RUN) == left] for left in (False, True)
        )
        return {"lines": tested, "others": others, "file": linked(path, job.outputs["report"])}
    return {}


def _coverage(job: Job) -> Iterable[coverage.Line]:
    """The ledger of printed numbers, with what this study has measured of them."""
    tables = [*job.many("tables"), *job.many("extraction"), *job.many("times")]
    measured = {
        target
        for path in tables
        for target in coverage.targets_in(read_table(path, TABLE).to_pylist(), path.stem)
    }
    measured |= {(path.stem, "", "table") for path in tables}
    measured |= {(path.parent.name, "", path.stem) for path in job.many("figures")}
    ledgers = {
        path.stem: coverage.read_ledger(path.read_text("utf-8"), str(path)) for path in job.many("ledger")
    }
    cells = [
        cell for path in job.many("published") for cell in read_printed(path.read_bytes(), path.as_posix())
    ]
    return coverage.lines(cells, ledgers, [measured]) if ledgers else []
