"""From scores to tables, figures, verdicts on the papers' claims, and the page about the study.

The record of an experiment's figures lists its pictures, {figure}.svg, and their data, {figure}.parquet.
"""

TABLE = settings_of(
    grid,
    "chosen_by",
    "development",
    "gaps",
    experiment="block.experiment",
    printed_in="block.printed_in",
    significance="study.settings.significance",
    trained="lengths",
)
"""Return the slice of the configuration for a table."""


make_table = JobSpec(
    "reporting.tables.make_table",
    settings=TABLE,
)


rule make_table:
    """Make one experiment's table: means over seeds, differences to the baseline, tests."""
    input:
        scores=lambda w: grid(w).suite_files("<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet"),
        metrics=lambda w: grid(w).metrics,
        histories=lambda w: grid(w).histories,
        dev=lambda w: grid(w).dev,
        published=lambda w: grid(w).published,
        code=make_table.code,
    output:
        table="<results>/tables/{experiment}.parquet",
    log:
        "<logs>/make_table/{experiment}.log",
    benchmark:
        "<benchmarks>/make_table/{experiment}.tsv"
    localrule: True
    resources:
        **job_resources(gigabytes=2, minutes=10),
    params:
        **make_table.params,
    message:
        "Make the table of {wildcards.experiment}; log: {log}"
    shell:
        make_table.shell


tabulate_times = JobSpec(
    "reporting.tables.tabulate_times",
    settings=TABLE,
)


rule tabulate_times:
    """Tabulate the measured columns of one experiment, apart from its table, since they differ between executions."""
    input:
        scores=lambda w: grid(w).suite_files(
            "<benchmarks>/times/{kind}/{suite}/{run}/seed{seed}.parquet", timed=True
        ),
        histories=lambda w: grid(w).histories,
        published=lambda w: grid(w).published,
        code=tabulate_times.code,
    output:
        table="<benchmarks>/tabulate_times/{experiment}.parquet",
    log:
        "<logs>/tabulate_times/{experiment}.log",
    benchmark:
        "<benchmarks>/tabulate_times/{experiment}.tsv"
    localrule: True
    resources:
        **job_resources(gigabytes=2, minutes=10),
    params:
        **tabulate_times.params,
    message:
        "Tabulate the measured times of {wildcards.experiment}; log: {log}"
    shell:
        tabulate_times.shell


tabulate_extraction = JobSpec(
    "reporting.extraction_table.tabulate_extraction",
    settings=EXTRACTION.table,
)


rule tabulate_extraction:
    """Make one table of the extraction study, with the paper's numbers."""
    input:
        scores=EXTRACTION.scores,
        published=EXTRACTION.published,
        code=tabulate_extraction.code,
    output:
        cells="<results>/tables/{table}.parquet",
    log:
        "<logs>/tabulate_extraction/{table}.log",
    benchmark:
        "<benchmarks>/tabulate_extraction/{table}.tsv"
    localrule: True
    resources:
        **job_resources(gigabytes=4, minutes=10),
    params:
        **tabulate_extraction.params,
    message:
        "Make table {wildcards.table} of the extraction study; log: {log}"
    shell:
        tabulate_extraction.shell


describe_datasets = JobSpec(
    "reporting.dataset_statistics.describe_datasets",
    settings=config_settings(table="extraction.statistics.{statistics}"),
)


rule describe_datasets:
    """Describe the extraction study's datasets: rows, classes, vocabulary, lengths."""
    input:
        encoder=EXTRACTION.encoder,
        datasets=EXTRACTION.described,
        published=EXTRACTION.published,
        code=describe_datasets.code,
    output:
        cells="<results>/tables/{statistics}.parquet",
    log:
        "<logs>/describe_datasets/{statistics}.log",
    benchmark:
        "<benchmarks>/describe_datasets/{statistics}.tsv"
    resources:
        **job_resources(gigabytes=4, minutes=15),
    params:
        **describe_datasets.params,
    message:
        "Describe the extraction study's datasets in table {wildcards.statistics}; log: {log}"
    shell:
        describe_datasets.shell


judge_claims = JobSpec(
    "reporting.verdicts.judge_claims",
    settings=lambda _: CLAIMS.settings(),  # a function, since braces in a string would be wildcards
)


rule judge_claims:
    """Test the papers' claims against the study's scores; claims add no jobs."""
    input:
        **CLAIMS.reads(),
        code=judge_claims.code,
    output:
        verdicts="<results>/claims.parquet",
    log:
        "<logs>/judge_claims/claims.log",
    benchmark:
        "<benchmarks>/judge_claims/claims.tsv"
    localrule: True
    resources:
        **job_resources(gigabytes=4, minutes=10),
    params:
        **judge_claims.params,
    message:
        "Test the papers' claims against the study's scores; log: {log}"
    shell:
        judge_claims.shell


draw_figures = JobSpec(
    "figures.drawing.draw_figures",
    settings=FIGURES.settings,
    imports=FIGURES.modules,
)


rule draw_figures:
    """Draw all figures of an experiment, or of the extraction study, each with its data."""
    input:
        unpack(FIGURES.inputs),
        code=draw_figures.code,
    output:
        figures="<results>/figures/{experiment}/record.json",
    log:
        "<logs>/draw_figures/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_figures/{experiment}.tsv"
    wildcard_constraints:
        experiment=name_pattern(FIGURES.of_experiments),
    resources:
        **job_resources(gigabytes=4, minutes=30, encoders=FIGURES.encoders),
    params:
        **draw_figures.params,
    message:
        "Draw the figures of {wildcards.experiment}; log: {log}"
    shell:
        draw_figures.shell


draw_claims = JobSpec(
    "figures.drawing.draw_claims",
    settings=FIGURES.settings,
    imports=FIGURES.modules,
)


# apart from draw_figures, since verdicts read figures of the extraction study: a group must not depend on itself
rule draw_claims:
    """Draw the figures of the papers' claims, each with its data."""
    input:
        unpack(FIGURES.inputs),
        code=draw_claims.code,
    output:
        figures="<results>/figures/{experiment}/record.json",
    log:
        "<logs>/draw_claims/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_claims/{experiment}.tsv"
    wildcard_constraints:
        experiment=CLAIM_FIGURES,
    localrule: True
    resources:
        **job_resources(gigabytes=4, minutes=10),
    params:
        **draw_claims.params,
    message:
        "Draw the figures of the papers' claims; log: {log}"
    shell:
        draw_claims.shell


write_report = JobSpec(
    "reporting.page.write_report",
    settings=lambda _: PAGE.settings(),  # a function, since braces in a string would be wildcards
)


rule write_report:
    """Write the complete study on one page."""
    input:
        **PAGE.reads(),
        tables=collect("<results>/tables/{grid.name}.parquet", grid=STUDY.paper_grids()),
        times=collect("<benchmarks>/tabulate_times/{grid.name}.parquet", grid=STUDY.paper_grids(timed=True)),
        extraction=EXTRACTION.tables,
        figures=FIGURES.drawn(),
        claims=CLAIMS.verdicts,
        template="resources/report/report.html.j2",
        code=write_report.code,
    output:
        report="<results>/report.html",
    log:
        "<logs>/write_report/report.log",
    benchmark:
        "<benchmarks>/write_report/report.tsv"
    localrule: True
    resources:
        **job_resources(gigabytes=4, minutes=10),
    params:
        **write_report.params,
    message:
        "Write the report {output.report}; log: {log}"
    shell:
        write_report.shell
