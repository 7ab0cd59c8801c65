"""From scores to tables, figures, verdicts on the papers' claims, and the page about the study.

The record of an experiment's figures lists its pictures, {figure}.svg, and their data, {figure}.parquet.
"""

TABLE = parts(
    grid,
    "development",
    experiment="block.experiment",
    significance="study.settings.significance",
    trained="lengths",
)
"""The slice of a table."""


rule make_table:
    """One experiment's table: means over seeds, differences to the baseline, tests."""
    input:
        scores=lambda w: grid(w).suite_files("<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet"),
        metrics=lambda w: grid(w).metrics,
        published=lambda w: grid(w).published,
        code=code("reporting.tables"),
    output:
        table="<results>/tables/{experiment}.parquet",
    log:
        "<logs>/make_table/{experiment}.log",
    localrule: True
    resources:
        **ask(2, minutes=10),
    params:
        **call("reporting.tables", TABLE),
    shell:
        command("make_table")


rule tabulate_times:
    """Measured columns of one experiment's table. They differ from run to run, so they are kept apart from it."""
    input:
        scores=lambda w: grid(w).suite_files(
            "<benchmarks>/evaluate_{kind}/{suite}/{run}/seed{seed}.times.parquet", timed=True
        ),
        published=lambda w: grid(w).published,
        code=code("reporting.tables"),
    output:
        table="<benchmarks>/tabulate_times/{experiment}.parquet",
    log:
        "<logs>/tabulate_times/{experiment}.log",
    localrule: True
    resources:
        **ask(2, minutes=10),
    params:
        **call("reporting.tables", TABLE),
    shell:
        command("tabulate_times")


rule tabulate_extraction:
    """One table of the extraction study, with the paper's numbers."""
    input:
        scores=EXTRACTION.scores,
        published=EXTRACTION.published,
        code=code("jobs.tabulate_extraction"),
    output:
        cells="<results>/tables/{table}.parquet",
    log:
        "<logs>/tabulate_extraction/{table}.log",
    localrule: True
    resources:
        **ask(4, minutes=10),
    params:
        **call("jobs.tabulate_extraction", EXTRACTION.table),
    shell:
        command("tabulate_extraction")


rule describe_datasets:
    """Statistics of the extraction study's datasets: rows, classes, vocabulary, lengths."""
    input:
        encoder=EXTRACTION.encoder,
        datasets=EXTRACTION.described,
        published=EXTRACTION.published,
        code=code("reporting.dataset_statistics"),
    output:
        cells="<results>/tables/{statistics}.parquet",
    log:
        "<logs>/describe_datasets/{statistics}.log",
    resources:
        **ask(4, minutes=15),
    params:
        **call("reporting.dataset_statistics", settings(table="extraction.statistics.{statistics}")),
    shell:
        command("describe_datasets")


rule judge_claims:
    """Hold what papers say of their methods to the study's own scores; nothing is made for a claim."""
    input:
        **CLAIMS.reads(),
        code=code("reporting.verdicts"),
    output:
        verdicts="<results>/claims.parquet",
    log:
        "<logs>/judge_claims/claims.log",
    localrule: True
    resources:
        **ask(4, minutes=10),
    params:  # functions, since braces in a string would be wildcards
        **call("reporting.verdicts", lambda _: CLAIMS.settings()),
    shell:
        command("judge_claims")


rule draw_figures:
    """All figures of an experiment, or of the extraction study, each with the data that it shows."""
    input:
        unpack(FIGURES.inputs),
        code=code("figures.drawing", FIGURES.modules),
    output:
        figures="<results>/figures/{experiment}/record.json",
    log:
        "<logs>/draw_figures/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_figures/{experiment}.tsv"
    wildcard_constraints:
        experiment=one_of(FIGURES.by_experiment),
    resources:
        **ask(4, minutes=30, loads=FIGURES.encoders),
    params:
        **call("figures.drawing", FIGURES.settings, FIGURES.modules),
    shell:
        command("draw_figures")


rule write_report:
    """The whole study on one page."""
    input:
        **PAGE.reads(),
        tables=collect("<results>/tables/{grid.name}.parquet", grid=STUDY.paper_grids()),
        times=collect("<benchmarks>/tabulate_times/{grid.name}.parquet", grid=STUDY.paper_grids(timed=True)),
        extraction=EXTRACTION.tables,
        figures=FIGURES.drawn(),
        claims=CLAIMS.verdicts,
        template="resources/report/report.html.j2",
        code=code("reporting.page"),
    output:
        report="<results>/report.html",
    log:
        "<logs>/write_report/report.log",
    localrule: True
    resources:
        **ask(4, minutes=10),
    params:  # functions, since braces in a string would be wildcards
        **call("reporting.page", lambda _: PAGE.settings()),
    shell:
        command("write_report")
