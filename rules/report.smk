"""From scores to tables, figures and the page about the study.

Inputs:  <results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet and .pairs.parquet,
         runs/{run}/seed{seed}/, datasets/, corpora/ and contamination/ below <results>,
         resources/published/{table}.csv of the papers' tables that a grid names, all of them and
         resources/ledger/{paper}.yaml for the page
Outputs: <results>/tables/{experiment}.parquet, <benchmarks>/tabulate_times/{experiment}.parquet of measured columns
         <results>/figures/{experiment}/record.json, which lists the experiment's pictures, {figure}.svg, and their
         data, {figure}.parquet
         <results>/tables/{table}.parquet and figures of the experiment ``extraction``, the study without training
         <results>/claims.parquet, what the papers say against the scores of the study; <results>/report.html
"""


rule make_table:
    """One experiment's table: means over seeds, differences to the baseline, tests."""
    input:
        scores=REPORTING.scores,
        metrics=REPORTING.metrics,
        published=REPORTING.published,
        code=code_of("make_table"),
    output:
        table="<results>/tables/{experiment}.parquet",
    log:
        "<logs>/make_table/{experiment}.log",
    benchmark:
        "<benchmarks>/make_table/{experiment}.tsv"
    localrule: True
    resources:
        **REQUESTS.of("make_table"),
    params:
        **call("make_table", REPORTING.table_settings),
    shell:
        command("make_table")


rule tabulate_times:
    """Measured columns of one experiment's table. They differ from run to run, so they are kept apart from it."""
    input:
        scores=REPORTING.times,
        published=REPORTING.published,
        code=code_of("tabulate_times"),
    output:
        table="<benchmarks>/tabulate_times/{experiment}.parquet",
    log:
        "<logs>/tabulate_times/{experiment}.log",
    benchmark:
        "<benchmarks>/tabulate_times/{experiment}.tsv"
    localrule: True
    resources:
        **REQUESTS.of("tabulate_times"),
    params:
        **call("tabulate_times", REPORTING.table_settings),
    shell:
        command("tabulate_times")


rule tabulate_extraction:
    """One table of the extraction study, with the paper's numbers."""
    input:
        scores=EXTRACTION.table_scores,
        published=EXTRACTION.published,
        code=code_of("tabulate_extraction"),
    output:
        cells="<results>/tables/{table}.parquet",
    log:
        "<logs>/tabulate_extraction/{table}.log",
    benchmark:
        "<benchmarks>/tabulate_extraction/{table}.tsv"
    wildcard_constraints:
        table=one_of(config["extraction"]["tables"]),
    localrule: True
    resources:
        **REQUESTS.of("tabulate_extraction"),
    params:
        **call("tabulate_extraction", EXTRACTION.table_settings),
    shell:
        command("tabulate_extraction")


rule describe_datasets:
    """Statistics of the extraction study's datasets: rows, classes, vocabulary, lengths."""
    input:
        encoder=EXTRACTION.encoder,
        datasets=EXTRACTION.described_datasets,
        published=EXTRACTION.published,
        code=code_of("describe_datasets"),
    output:
        cells="<results>/tables/{statistics}.parquet",
    log:
        "<logs>/describe_datasets/{statistics}.log",
    benchmark:
        "<benchmarks>/describe_datasets/{statistics}.tsv"
    wildcard_constraints:
        statistics=one_of(config["extraction"]["statistics"]),
    resources:
        **REQUESTS.of("describe_datasets"),
    params:
        **call("describe_datasets", config_slice(config, table="extraction.statistics.{statistics}")),
    shell:
        command("describe_datasets")


rule judge_claims:
    """Hold what papers say of their methods to the study's own scores; nothing is made for a claim."""
    input:
        tables=CLAIMS.tables(),
        figures=CLAIMS.figures(),
        pairs=CLAIMS.pairs(),
        code=code_of("judge_claims"),
    output:
        verdicts="<results>/claims.parquet",
    log:
        "<logs>/judge_claims/claims.log",
    benchmark:
        "<benchmarks>/judge_claims/claims.tsv"
    localrule: True
    resources:
        **REQUESTS.of("judge_claims"),
    params:  # functions, since braces in a string would be wildcards
        **call("judge_claims", lambda _: CLAIMS.settings()),
    shell:
        command("judge_claims")


rule draw_figures:
    """All figures of an experiment, or of the extraction study, each with the data that it shows."""
    input:
        unpack(FIGURES.inputs),
        code=code_with("draw_figures", FIGURES.modules),
    output:
        figures="<results>/figures/{experiment}/record.json",
    log:
        "<logs>/draw_figures/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_figures/{experiment}.tsv"
    wildcard_constraints:
        experiment=one_of(FIGURES.experiments),
    resources:
        **REQUESTS.of("draw_figures"),
    params:
        **call("draw_figures", FIGURES.settings, FIGURES.modules),
    shell:
        command("draw_figures")


rule write_report:
    """The whole study on one page."""
    input:
        **REPORTING.of_page(),
        tables=REPORTING.tables(),
        times=REPORTING.tables_of_times(),
        extraction=EXTRACTION.tables,
        figures=FIGURES.drawn(),
        claims=CLAIMS.verdicts,
        template="resources/report/report.html.j2",
        code=code_of("write_report"),
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
    resources:
        **REQUESTS.of("write_report"),
    params:  # functions, since braces in a string would be wildcards
        **call("write_report", lambda _: REPORTING.page_settings()),
    shell:
        command("write_report")
