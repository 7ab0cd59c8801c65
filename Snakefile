"""Sentence-embedding methods: sources -> corpora -> encoders -> scores -> tables, figures, report."""

from pathlib import Path

from snakemake.utils import min_version

from workflow_scripts.graph.console import check_targets, report_failures
from workflow_scripts.graph.clone import clone_folder, open_clone
from workflow_scripts.graph.unasked import NamedJob, unasked_study
from workflow_scripts.settings.grids import paper_of

min_version("9.25")
CLONE = clone_folder(workflow)  # it need not be the working directory
open_clone(Path(CLONE))


include: "rules/common.smk"
include: "rules/sources.smk"
include: "rules/prepare.smk"
include: "rules/augment.smk"
include: "rules/train.smk"
include: "rules/evaluate.smk"
include: "rules/extract.smk"
include: "rules/report.smk"
include: "rules/share.smk"


rule all:
    default_target: True
    input:
        "<results>/report.html",
        collect("<results>/tables/{grid.name}.parquet", grid=STUDY.paper_grids()),
        collect("<benchmarks>/tabulate_times/{grid.name}.parquet", grid=STUDY.paper_grids(timed=True)),
        EXTRACTION.tables,
        CLAIMS.verdicts,
        FIGURES.drawn(),
        # Their inputs, too: a failed or killed job has deleted its outputs, even if results made from them still exist.
        STUDY.per_run("<results>/runs/{run}/seed{seed}/model/record.json"),
        collect("<results>/encoders/{name}/record.json", name=STUDY.read_encoders),
        **PAGE.reads(),
        scores=[file for run in STUDY.made_runs.values() for file in run.scores],
        extracted=EXTRACTION.shown,


for paper in sorted({*map(paper_of, SETTINGS.experiments)}):

    rule:
        """Make the tables and figures of one paper."""
        name:
            paper
        input:
            collect("<results>/tables/{grid.name}.parquet", grid=STUDY.paper_grids(paper)),
            collect(
                "<benchmarks>/tabulate_times/{grid.name}.parquet", grid=STUDY.paper_grids(paper, timed=True)
            ),
            branch(paper == "extraction", then=EXTRACTION.tables),
            FIGURES.drawn(paper),


if workflow.modifier.is_main_snakefile():  # otherwise targets belong to the workflow around this one
    check_targets(workflow, STUDY.folder)
    report_failures(
        on_plan=lambda: unasked_study(
            STUDY,
            CONFIGFILES,
            (NamedJob(job.rule.name, job.wildcards_dict) for job in workflow.dag.needrun_jobs()),
        )
    )
