"""From scores to tables, figures and the page about the study.

Inputs:  <results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet and .pairs.parquet,
         <results>/runs/{run}/seed{seed}/, <results>/datasets/, <results>/corpora/,
         <results>/contamination/{corpus}.parquet where it is measured,
         resources/published/{table}.csv of the papers' tables that a grid names, all of them and
         resources/ledger/{paper}.yaml for the page
Outputs: <results>/tables/{experiment}.parquet, <benchmarks>/tabulate_times/{experiment}.parquet of measured columns
         <results>/figures/{experiment}/{figure}.svg, each with its data in {figure}.parquet
         <results>/tables/{table}.parquet, <results>/figures/extraction/{figure}.svg of the extraction study
         <results>/claims.parquet, what the papers say against the scores of the study
         <results>/report.html
Targets: one for each paper, such as `snakemake jtcse`: its tables and figures, without the page
"""

config["captions"] = FIGURES.captions()  # for figure.rst, in Snakemake's own report


rule make_table:
    """One experiment's table: means over seeds, differences to the baseline, tests."""
    input:
        scores=REPORTING.scores,
        metrics=REPORTING.metrics,
        published=REPORTING.published,
        code=code_of("jobs.make_table"),
    output:
        table="<results>/tables/{experiment}.parquet",
    log:
        "<logs>/make_table/{experiment}.log",
    benchmark:
        "<benchmarks>/make_table/{experiment}.tsv"
    localrule: True
    threads: 1
    resources:
        mem=MEMORY.usual(2),
        runtime="10m",
    params:
        config=REPORTING.table_settings,
        packages=versions("jobs.make_table"),
    message:
        "Make table {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.jobs.make_table \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --scores {input.scores:q} --metrics {input.metrics:q} --published {input.published:q} --table {output.table:q} >{log:q} 2>&1
        """


rule tabulate_times:
    """Measured columns of one experiment's table. They differ from run to run, so they are kept apart from it."""
    input:
        scores=REPORTING.times,
        published=REPORTING.published,
        code=code_of("jobs.tabulate_times"),
    output:
        table="<benchmarks>/tabulate_times/{experiment}.parquet",
    log:
        "<logs>/tabulate_times/{experiment}.log",
    benchmark:
        "<benchmarks>/tabulate_times/{experiment}.tsv"
    localrule: True
    threads: 1
    resources:
        mem=MEMORY.usual(2),
        runtime="10m",
    params:
        config=REPORTING.table_settings,
        packages=versions("jobs.tabulate_times"),
    message:
        "Make the measured columns of table {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.jobs.tabulate_times \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --scores {input.scores:q} --published {input.published:q} --table {output.table:q} >{log:q} 2>&1
        """


rule tabulate_extraction:
    """One table of the extraction study, with the paper's numbers."""
    input:
        scores=EXTRACTION.table_scores,
        published=EXTRACTION.published_table,
        code=code_of("jobs.tabulate_extraction"),
    output:
        cells="<results>/tables/{table}.parquet",
    log:
        "<logs>/tabulate_extraction/{table}.log",
    benchmark:
        "<benchmarks>/tabulate_extraction/{table}.tsv"
    wildcard_constraints:
        table=one_of(config["extraction"]["tables"]),
    localrule: True
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="10m",
    params:
        config=EXTRACTION.table_settings,
        packages=versions("jobs.tabulate_extraction"),
    message:
        "Make table {wildcards.table}"
    shell:
        r"""
        python -m workflow_scripts.jobs.tabulate_extraction \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --table {wildcards.table:q} \
            --scores {input.scores:q} --published {input.published:q} --cells {output.cells:q} >{log:q} 2>&1
        """


rule describe_datasets:
    """Statistics of the extraction study's datasets: rows, classes, vocabulary, lengths."""
    input:
        encoder=EXTRACTION.encoder,
        datasets=EXTRACTION.described_datasets,
        published=EXTRACTION.published_statistics,
        code=code_of("jobs.describe_datasets"),
    output:
        cells="<results>/tables/{statistics}.parquet",
    log:
        "<logs>/describe_datasets/{statistics}.log",
    benchmark:
        "<benchmarks>/describe_datasets/{statistics}.tsv"
    wildcard_constraints:
        statistics=one_of(config["extraction"]["statistics"]),
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="15m",
    params:
        config=config_slice(config, table="extraction.statistics.{statistics}"),
        packages=versions("jobs.describe_datasets"),
    message:
        "Describe the sets of {wildcards.statistics}"
    shell:
        r"""
        python -m workflow_scripts.jobs.describe_datasets \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --statistics {wildcards.statistics:q} \
            --encoder {input.encoder:q} --datasets {input.datasets:q} --published {input.published:q} \
            --cells {output.cells:q} >{log:q} 2>&1
        """


rule judge_claims:
    """Hold what papers say of their methods to the study's own scores; nothing is made for a claim."""
    input:
        tables=CLAIMS.tables(),
        scores=CLAIMS.scores(),
        pairs=CLAIMS.pairs(),
        code=code_of("jobs.judge_claims"),
    output:
        verdicts="<results>/claims.parquet",
    log:
        "<logs>/judge_claims/claims.log",
    benchmark:
        "<benchmarks>/judge_claims/claims.tsv"
    localrule: True
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="10m",
    params:
        # A function, since braces in a string would be wildcards.
        config=lambda _: CLAIMS.settings(),
        packages=versions("jobs.judge_claims"),
    message:
        "Judge the papers' claims"
    shell:
        r"""
        python -m workflow_scripts.jobs.judge_claims \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --tables {input.tables:q} \
            --scores {input.scores:q} --pairs {input.pairs:q} --verdicts {output.verdicts:q} >{log:q} 2>&1
        """


rule draw_figure:
    """One figure of an experiment, or of the extraction study."""
    input:
        files=FIGURES.inputs,
        code=FIGURES.code,
    output:
        svg=report(
            "<results>/figures/{experiment}/{figure}.svg",
            caption="../resources/captions/figure.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "{figure}"},
        ),
        data="<results>/figures/{experiment}/{figure}.parquet",
    log:
        "<logs>/draw_figure/{experiment}/{figure}.log",
    benchmark:
        "<benchmarks>/draw_figure/{experiment}/{figure}.tsv"
    wildcard_constraints:
        experiment=FIGURES.places,
        figure=one_of(FIGURES.names),
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="15m",
    params:
        config=FIGURES.settings,
        packages=FIGURES.versions,
    message:
        "Draw {wildcards.figure} of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.jobs.draw_figure \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --experiment {wildcards.experiment:q} --figure {wildcards.figure:q} \
            --inputs {input.files:q} --svg {output.svg:q} --data {output.data:q} >{log:q} 2>&1
        """


for figures, experiments in FIGURES.together.items():

    rule:
        """Figures of one experiment in one process, which takes longer to start than to draw any of them."""
        name:
            FIGURES.rule_drawing(experiments)
        input:
            **FIGURES.each(figures, "files", FIGURES.inputs),
            **FIGURES.each(figures, "code", FIGURES.code),
        output:
            **{
                f"{figure}_svg": report(
                    f"<results>/figures/{{experiment}}/{figure}.svg",
                    caption=f"../resources/captions/{figure}.rst",
                    category="Figures",
                    labels={"experiment": "{experiment}", "shows": figure},
                )
                for figure in figures
            },
            **{f"{figure}_data": f"<results>/figures/{{experiment}}/{figure}.parquet" for figure in figures},
        log:
            "<logs>/draw_figure/{experiment}/figures.log",
        benchmark:
            "<benchmarks>/draw_figure/{experiment}/figures.tsv"
        wildcard_constraints:
            experiment=one_of(experiments),
        threads: 1
        resources:
            mem=MEMORY.usual(4),
            runtime="15m",
        params:
            # Snakemake compares these; ``jobs``, which is made of files, it does not.
            **FIGURES.each(figures, "config", FIGURES.settings),
            **FIGURES.each(figures, "packages", FIGURES.versions),
            jobs=FIGURES.commands(figures),
        message:
            f"Draw {', '.join(figures)} of {{wildcards.experiment}}"
        shell:
            r"""
            python -m workflow_scripts.jobs {params.jobs:q} >{log:q} 2>&1
            """

    workflow.ruleorder(FIGURES.rule_drawing(experiments), "draw_figure")


rule write_report:
    """The whole study on one page."""
    input:
        tables=REPORTING.tables(),
        times=REPORTING.tables_of_times(),
        extraction=EXTRACTION.tables,
        figures=FIGURES.pictures(),
        claims=CLAIMS.verdicts,
        captions=FIGURES.caption_files(),
        datasets=REPORTING.datasets(".parquet"),
        dropped=REPORTING.datasets(".dropped.parquet"),
        train=REPORTING.corpora("train.parquet"),
        lost=REPORTING.round_trips(),
        words=REPORTING.corpora("words.parquet"),
        contamination=REPORTING.contamination(),
        exemplars=REPORTING.exemplars(),
        development=STUDY.development_sets,
        histories=REPORTING.histories(),
        published=REPORTING.printed(),
        ledger=REPORTING.ledger(),
        template="resources/report/report.html.j2",
        code=code_of("jobs.write_report"),
    output:
        report=report(
            "<results>/report.html",
            caption="../resources/captions/study_report.rst",
            category="Report",
            labels={"experiment": "all", "shows": "the study on one page"},
        ),
    log:
        "<logs>/write_report/report.log",
    benchmark:
        "<benchmarks>/write_report/report.tsv"
    localrule: True
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="10m",
    params:
        # Functions, since braces in a string would be wildcards.
        config=lambda _: REPORTING.page_settings(),
        speeds=lambda _: REPORTING.speeds(),
        packages=versions("jobs.write_report"),
    message:
        "Write the report"
    shell:
        r"""
        python -m workflow_scripts.jobs.write_report \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --template {input.template:q} \
            --tables {input.tables:q} --times {input.times:q} --extraction {input.extraction:q} --figures {input.figures:q} --claims {input.claims:q} --captions {input.captions:q} \
            --datasets {input.datasets:q} --dropped {input.dropped:q} \
            --train {input.train:q} --lost {input.lost:q} --words {input.words:q} --contamination {input.contamination:q} \
            --exemplars {input.exemplars:q} --development {input.development:q} --histories {input.histories:q} \
            --published {input.published:q} --ledger {input.ledger:q} \
            --speeds {params.speeds:q} --report {output.report:q} >{log:q} 2>&1
        """


for paper in REPORTING.papers:

    rule:
        """Tables and figures of one paper."""
        name:
            paper
        input:
            REPORTING.tables(paper),
            REPORTING.tables_of_times(paper),
            FIGURES.pictures(paper),


if "extraction" in config["experiments"]:

    rule extraction:
        """Tables and figures of the extraction study."""
        input:
            EXTRACTION.tables,
            FIGURES.pictures("extraction"),
