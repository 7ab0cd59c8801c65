"""Sentence-embedding methods: sources -> corpora -> encoders -> scores -> tables, figures, report."""

from pathlib import Path

from snakemake.utils import min_version

from workflow_scripts.graph.targets import check_targets
from workflow_scripts.graph.yaml_files import check_configfiles

min_version("9.25")
check_configfiles(Path(workflow.main_snakefile))


configfile: "config/config.yaml"
configfile: "config/encoders.yaml"
configfile: "config/corpora.yaml"
configfile: "config/apis.yaml"
configfile: "config/exemplars.yaml"
configfile: "config/datasets.yaml"
configfile: "config/methods.yaml"
configfile: "config/mteb.yaml"
configfile: "config/extraction.yaml"


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
        REPORTING.tables(),
        REPORTING.tables_of_times(),
        EXTRACTION.tables,
        FIGURES.pictures(),
        KEEPING.dropped(),


check_targets(workflow, STUDY)
