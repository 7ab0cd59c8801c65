"""Scores to tables, figures and the page about the study.

Inputs:  <results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet and .pairs.parquet,
         <results>/runs/{run}/seed{seed}/history.parquet, <results>/datasets/, <results>/corpora/,
         <results>/contamination/{corpus}.parquet where it is measured,
         resources/published/{table}.csv of the papers' tables that a grid names
Outputs: <results>/tables/{experiment}.parquet
         <results>/figures/{experiment}/{figure}.svg, each with its data in {figure}.parquet
         <results>/tables/{table}.parquet, <results>/figures/extraction/{drawing}.svg of the extraction study
         <results>/report.html
Targets: one for each paper, such as `snakemake jtcse`: its tables and figures, without the page
"""

FIGURES = [
    "learning_curves",
    "threshold_path",
    "attention_maps",
    "cosine_density",
    "alignment_uniformity",
    "sweep",
    "layer_attention",
    "token_similarity",
    "scatter",
    "modulus_surface",
]
CORPORA = sorted(
    {*asked_corpora()}
    | {config["encoders"][run.encoder]["adapt"]["corpus"] for run in RUNS.values() if run.encoder in ADAPTED}
)
SHOWN = config["extraction"]["show"]
STUDY = config | {"grids": EXPERIMENTS}
FIGURES_OF = {
    experiment: [
        f"<results>/figures/{experiment}/{figure}.svg" for figure in FIGURES if has_figure(figure, grid)
    ]
    for experiment, grid in EXPERIMENTS.items()
}
TABLES_OF_EXTRACTION = [
    f"<results>/tables/{table}.parquet" for table in SHOWN["statistics"] + SHOWN["tables"]
]
DRAWINGS_OF_EXTRACTION = [f"<results>/figures/extraction/{drawing}.svg" for drawing in SHOWN["figures"]]


rule make_table:
    """One experiment's table: means over seeds, differences to the baseline, tests."""
    input:
        scores=scores_of,
        published=published_of,
        code=sources("make_table"),
    output:
        table="<results>/tables/{experiment}.parquet",
    log:
        "<logs>/make_table/{experiment}.log",
    benchmark:
        "<benchmarks>/make_table/{experiment}.tsv"
    localrule: True
    threads: 1
    resources:
        mem="2GB",
        runtime="10m",
    params:
        config=config_slice(STUDY, experiment="grids.{experiment}", significance="significance"),
        packages=versions("make_table"),
    message:
        "Make table {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.make_table \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --scores {input.scores:q} --published {input.published:q} --table {output.table:q} >{log:q} 2>&1
        """


rule tabulate_extraction:
    """One table of the extraction study: rows of shapes and columns of models, the paper's numbers beside them."""
    input:
        scores=lambda wildcards: below_results(files_of_table(config, wildcards.table)),
        published=published_extraction,
        code=sources("tabulate_extraction"),
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
        mem="4GB",
        runtime="10m",
    params:
        config=table_settings,
        packages=versions("tabulate_extraction"),
    message:
        "Make table {wildcards.table}"
    shell:
        r"""
        python -m workflow_scripts.tabulate_extraction \
            --config {params.config:q} --table {wildcards.table:q} \
            --scores {input.scores:q} --published {input.published:q} --cells {output.cells:q} >{log:q} 2>&1
        """


rule describe_datasets:
    """What the sets of the extraction study look like: rows, classes, vocabulary, lengths."""
    input:
        encoder=f"<results>/encoders/{config['extraction']['encoder']}/record.json",
        datasets=described_datasets,
        published=published_statistics,
        code=sources("describe_datasets"),
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
        mem="4GB",
        runtime="15m",
    params:
        config=config_slice(config, table="extraction.statistics.{statistics}"),
        packages=versions("describe_datasets"),
    message:
        "Describe the sets of {wildcards.statistics}"
    shell:
        r"""
        python -m workflow_scripts.describe_datasets \
            --config {params.config:q} --statistics {wildcards.statistics:q} \
            --encoder {input.encoder:q} --datasets {input.datasets:q} --published {input.published:q} \
            --cells {output.cells:q} >{log:q} 2>&1
        """


rule draw_extraction:
    """One figure of the extraction study."""
    input:
        scores=lambda wildcards: below_results(files_of_figure(config, wildcards.drawing)),
        code=lambda wildcards: sources("draw_extraction", f"reporting.{drawing_kind(wildcards)}"),
    output:
        figure=report(
            "<results>/figures/extraction/{drawing}.svg",
            caption="../resources/captions/extraction.rst",
            category="Figures",
            labels={"experiment": "extraction", "shows": "{drawing}"},
        ),
        data="<results>/figures/extraction/{drawing}.parquet",
    log:
        "<logs>/draw_extraction/{drawing}.log",
    benchmark:
        "<benchmarks>/draw_extraction/{drawing}.tsv"
    wildcard_constraints:
        drawing=one_of(config["extraction"]["figures"]),
    threads: 1
    resources:
        mem="4GB",
        runtime="10m",
    params:
        config=drawing_settings,
        packages=lambda wildcards: versions("draw_extraction", f"reporting.{drawing_kind(wildcards)}"),
    message:
        "Draw {wildcards.drawing}"
    shell:
        r"""
        python -m workflow_scripts.draw_extraction \
            --config {params.config:q} --drawing {wildcards.drawing:q} \
            --scores {input.scores:q} --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_learning_curves:
    """Training loss and development score over optimiser steps."""
    input:
        histories=histories_of,
        code=sources("draw_learning_curves"),
    output:
        figure=report(
            "<results>/figures/{experiment}/learning_curves.svg",
            caption="../resources/captions/learning_curves.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "learning curves"},
        ),
        data="<results>/figures/{experiment}/learning_curves.parquet",
    log:
        "<logs>/draw_learning_curves/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_learning_curves/{experiment}.tsv"
    threads: 1
    resources:
        mem="2GB",
        runtime="10m",
    params:
        config=config_slice(
            STUDY,
            title="grids.{experiment}.title",
            figure="report.figure",
            learning_curves="report.learning_curves",
        ),
        packages=versions("draw_learning_curves"),
    message:
        "Draw learning curves of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_learning_curves \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --histories {input.histories:q} --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_threshold_path:
    """3R's threshold, and how many dimensions lie below it, over optimiser steps."""
    input:
        watched=watched_of,
        code=sources("draw_threshold_path"),
    output:
        figure=report(
            "<results>/figures/{experiment}/threshold_path.svg",
            caption="../resources/captions/threshold_path.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "threshold path"},
        ),
        data="<results>/figures/{experiment}/threshold_path.parquet",
    log:
        "<logs>/draw_threshold_path/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_threshold_path/{experiment}.tsv"
    threads: 1
    resources:
        mem="2GB",
        runtime="10m",
    params:
        config=config_slice(STUDY, title="grids.{experiment}.title", figure="report.figure"),
        packages=versions("draw_threshold_path"),
    message:
        "Draw the threshold of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_threshold_path \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --watched {input.watched:q} --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_attention_maps:
    """Where the tokens of one sentence attend, run by run."""
    input:
        maps=maps_of,
        code=sources("draw_attention_maps"),
    output:
        figure=report(
            "<results>/figures/{experiment}/attention_maps.svg",
            caption="../resources/captions/attention_maps.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "attention"},
        ),
        data="<results>/figures/{experiment}/attention_maps.parquet",
    log:
        "<logs>/draw_attention_maps/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_attention_maps/{experiment}.tsv"
    threads: 1
    resources:
        mem="2GB",
        runtime="10m",
    params:
        config=config_slice(
            STUDY,
            title="grids.{experiment}.title",
            figure="report.figure",
            attention_maps="report.attention_maps",
        ),
        packages=versions("draw_attention_maps"),
    message:
        "Draw the attention of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_attention_maps \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --maps {input.maps:q} --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_cosine_density:
    """Density of cosines in groups of equal judgement."""
    input:
        similarities=similarities_of,
        code=sources("draw_cosine_density"),
    output:
        figure=report(
            "<results>/figures/{experiment}/cosine_density.svg",
            caption="../resources/captions/cosine_density.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "cosines by judgement"},
        ),
        data="<results>/figures/{experiment}/cosine_density.parquet",
    log:
        "<logs>/draw_cosine_density/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_cosine_density/{experiment}.tsv"
    threads: 1
    resources:
        mem="2GB",
        runtime="10m",
    params:
        config=config_slice(
            STUDY,
            title="grids.{experiment}.title",
            figure="report.figure",
            cosine_density="report.cosine_density",
        ),
        packages=versions("draw_cosine_density"),
    message:
        "Draw cosine densities of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_cosine_density \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --similarities {input.similarities:q} --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_alignment_uniformity:
    """Runs in the alignment-uniformity plane, coloured by score."""
    input:
        table="<results>/tables/{experiment}.parquet",
        scores=lambda wildcards: [
            file
            for file in scores_of(wildcards)
            if f"/geometry/{config['report']['alignment_uniformity']['suite']}/" in file
        ],
        code=sources("draw_alignment_uniformity"),
    output:
        figure=report(
            "<results>/figures/{experiment}/alignment_uniformity.svg",
            caption="../resources/captions/alignment_uniformity.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "alignment and uniformity"},
        ),
        data="<results>/figures/{experiment}/alignment_uniformity.parquet",
    log:
        "<logs>/draw_alignment_uniformity/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_alignment_uniformity/{experiment}.tsv"
    threads: 1
    resources:
        mem="2GB",
        runtime="10m",
    params:
        config=config_slice(
            STUDY,
            experiment="grids.{experiment}",
            figure="report.figure",
            alignment_uniformity="report.alignment_uniformity",
        ),
        packages=versions("draw_alignment_uniformity"),
    message:
        "Draw alignment and uniformity of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_alignment_uniformity \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --table {input.table:q} --scores {input.scores:q} \
            --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_layer_attention:
    """What layer-wise attention pooling makes of single sentences."""
    input:
        models=attending_models_of,
        code=sources("draw_layer_attention", "models.readouts.layer_attention"),
    output:
        figure=report(
            "<results>/figures/{experiment}/layer_attention.svg",
            caption="../resources/captions/layer_attention.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "attention over layers"},
        ),
        data="<results>/figures/{experiment}/layer_attention.parquet",
    log:
        "<logs>/draw_layer_attention/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_layer_attention/{experiment}.tsv"
    threads: 1
    resources:
        mem="4GB",
        runtime="15m",
    params:
        config=config_slice(
            STUDY,
            title="grids.{experiment}.title",
            figure="report.figure",
            layer_attention="report.layer_attention",
        ),
        packages=versions("draw_layer_attention", "models.readouts.layer_attention"),
    message:
        "Draw the attention over layers of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_layer_attention \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --models {input.models:q} --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_token_similarity:
    """How alike some runs make the words of two sentences."""
    input:
        models=compared_models_of,
        code=lambda wildcards: sources("draw_token_similarity", *compared_modules(wildcards)),
    output:
        figure=report(
            "<results>/figures/{experiment}/token_similarity.svg",
            caption="../resources/captions/token_similarity.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "words of two sentences"},
        ),
        data="<results>/figures/{experiment}/token_similarity.parquet",
    log:
        "<logs>/draw_token_similarity/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_token_similarity/{experiment}.tsv"
    threads: 1
    resources:
        mem="4GB",
        runtime="15m",
    params:
        config=config_slice(
            STUDY,
            title="grids.{experiment}.title",
            figure="report.figure",
            token_similarity="report.token_similarity",
            case="grids.{experiment}.token_similarity",
        ),
        packages=lambda wildcards: versions("draw_token_similarity", *compared_modules(wildcards)),
    message:
        "Draw how alike words are in runs of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_token_similarity \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --models {input.models:q} --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_scatter:
    """Two columns of a table against each other."""
    input:
        table="<results>/tables/{experiment}.parquet",
        code=sources("draw_scatter"),
    output:
        figure=report(
            "<results>/figures/{experiment}/scatter.svg",
            caption="../resources/captions/scatter.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "two columns"},
        ),
        data="<results>/figures/{experiment}/scatter.parquet",
    log:
        "<logs>/draw_scatter/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_scatter/{experiment}.tsv"
    threads: 1
    resources:
        mem="2GB",
        runtime="10m",
    params:
        config=config_slice(
            STUDY,
            title="grids.{experiment}.title",
            figure="report.figure",
            scatter="grids.{experiment}.scatter",
        ),
        packages=versions("draw_scatter"),
    message:
        "Draw two columns of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_scatter \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --table {input.table:q} --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_modulus_surface:
    """The modulus loss over moduli and cosine; no run is read."""
    input:
        code=sources("draw_modulus_surface"),
    output:
        figure=report(
            "<results>/figures/{experiment}/modulus_surface.svg",
            caption="../resources/captions/modulus_surface.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "modulus constraint"},
        ),
        data="<results>/figures/{experiment}/modulus_surface.parquet",
    log:
        "<logs>/draw_modulus_surface/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_modulus_surface/{experiment}.tsv"
    threads: 1
    resources:
        mem="2GB",
        runtime="10m",
    params:
        config=config_slice(
            STUDY,
            title="grids.{experiment}.title",
            figure="report.figure",
            modulus_surface="grids.{experiment}.modulus_surface",
        ),
        packages=versions("draw_modulus_surface"),
    message:
        "Draw the modulus constraint of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_modulus_surface \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule draw_sweep:
    """Scores over the values of swept settings."""
    input:
        table="<results>/tables/{experiment}.parquet",
        code=sources("draw_sweep"),
    output:
        figure=report(
            "<results>/figures/{experiment}/sweep.svg",
            caption="../resources/captions/sweep.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "shows": "swept settings"},
        ),
        data="<results>/figures/{experiment}/sweep.parquet",
    log:
        "<logs>/draw_sweep/{experiment}.log",
    benchmark:
        "<benchmarks>/draw_sweep/{experiment}.tsv"
    threads: 1
    resources:
        mem="2GB",
        runtime="10m",
    params:
        config=config_slice(STUDY, experiment="grids.{experiment}", figure="report.figure"),
        packages=versions("draw_sweep"),
    message:
        "Draw the swept settings of {wildcards.experiment}"
    shell:
        r"""
        python -m workflow_scripts.draw_sweep \
            --config {params.config:q} --experiment {wildcards.experiment:q} \
            --table {input.table:q} --figure {output.figure:q} --data {output.data:q} >{log:q} 2>&1
        """


rule write_report:
    """The whole study on one page."""
    input:
        tables=collect("<results>/tables/{experiment}.parquet", experiment=EXPERIMENTS),
        extraction=TABLES_OF_EXTRACTION,
        drawings=DRAWINGS_OF_EXTRACTION,
        figures=[figure for figures in FIGURES_OF.values() for figure in figures],
        captions=collect("resources/captions/{figure}.rst", figure=[*FIGURES, "extraction"]),
        datasets=collect("<results>/datasets/{dataset}.parquet", dataset=datasets_of_study()),
        dropped=collect("<results>/datasets/{dataset}.dropped.parquet", dataset=datasets_of_study()),
        train=collect("<results>/corpora/{corpus}/train.parquet", corpus=CORPORA),
        words=collect("<results>/corpora/{corpus}/words.parquet", corpus=CORPORA),
        contamination=collect(
            "<results>/contamination/{corpus}.parquet", corpus=CORPORA if config["contamination"] else []
        ),
        exemplars=collect("<results>/exemplars/{pool}.parquet", pool=asked_pools()),
        development=development_sets(),
        template="resources/report/report.html.j2",
        code=sources("write_report"),
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
        mem="4GB",
        runtime="10m",
    params:
        config=config_slice(config, name="name", page="report.page"),
        packages=versions("write_report"),
    message:
        "Write the report"
    shell:
        r"""
        python -m workflow_scripts.write_report \
            --config {params.config:q} --template {input.template:q} \
            --tables {input.tables:q} --extraction {input.extraction:q} --drawings {input.drawings:q} --figures {input.figures:q} --captions {input.captions:q} \
            --datasets {input.datasets:q} --dropped {input.dropped:q} \
            --train {input.train:q} --words {input.words:q} --contamination {input.contamination:q} \
            --exemplars {input.exemplars:q} --development {input.development:q} \
            --report {output.report:q} >{log:q} 2>&1
        """


for paper in sorted({paper_of(experiment) for experiment in EXPERIMENTS}):

    rule:
        """Tables and figures of one paper."""
        name:
            paper
        input:
            [
                file
                for experiment, figures in FIGURES_OF.items()
                if paper_of(experiment) == paper
                for file in [f"<results>/tables/{experiment}.parquet", *figures]
            ],


rule extraction:
    """Tables and figures of the extraction study."""
    input:
        TABLES_OF_EXTRACTION,
        DRAWINGS_OF_EXTRACTION,
