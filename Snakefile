"""Sentence-embedding methods: sources -> corpora -> encoders -> scores -> tables, figures, report."""

from snakemake.utils import min_version

min_version("9.25")


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


rule all:
    default_target: True
    input:
        "<results>/report.html",
