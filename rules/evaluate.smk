"""Runs to scores: one job a run, seed and suite, one forward pass over the suite's unique sentences.

Inputs:  <results>/runs/{run}/seed{seed}/model/record.json, <results>/datasets/{dataset}.parquet,
         <results>/encoders/{encoder}/record.json where costs are compared, <results>/corpora/{corpus}/train.parquet
Outputs: <results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet, long form (schemas.SCORES)
         <results>/contamination/{corpus}.parquet, what corpora and evaluation sets share

Times differ from run to run. They lie beside Snakemake's own below <benchmarks>, and are no artefacts.
"""


rule evaluate_sts:
    """Correlation with human judgements: `all`, `wmean` and `mean`, Spearman and Pearson."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=datasets_of("sts"),
        code=loading_code("evaluate_sts"),
    output:
        scores="<results>/scores/sts/{suite}/{run}/seed{seed}.parquet",
        pairs="<results>/scores/sts/{suite}/{run}/seed{seed}.pairs.parquet",
    log:
        "<logs>/evaluate_sts/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_sts/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem="8GB",
        runtime="30m",
    params:
        config=config_slice(config, suite="suites.sts.{suite}"),
        packages=loading_packages("evaluate_sts"),
    message:
        "Evaluate {wildcards.run}, seed {wildcards.seed}, on pairs of {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.evaluate_sts \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} \
            --scores {output.scores:q} --pairs {output.pairs:q} >{log:q} 2>&1
        """


rule evaluate_geometry:
    """Alignment, uniformity, isotropy, modulus and mean cosine."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=datasets_of("geometry"),
        code=loading_code("evaluate_geometry"),
    output:
        scores="<results>/scores/geometry/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_geometry/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_geometry/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem="8GB",
        runtime="30m",
    params:
        config=config_slice(config, suite="suites.geometry.{suite}"),
        packages=loading_packages("evaluate_geometry"),
    message:
        "Measure the space of {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.evaluate_geometry \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} --scores {output.scores:q} >{log:q} 2>&1
        """


rule evaluate_clustering:
    """Agreement of k-means with the classes of short texts."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=datasets_of("clustering"),
        code=loading_code("evaluate_clustering"),
    output:
        scores="<results>/scores/clustering/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_clustering/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_clustering/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem="8GB",
        runtime="2h",
    params:
        config=config_slice(config, suite="suites.clustering.{suite}"),
        packages=loading_packages("evaluate_clustering"),
    message:
        "Cluster with {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.evaluate_clustering \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} --scores {output.scores:q} >{log:q} 2>&1
        """


rule evaluate_search:
    """Duplicate questions found by cosine, exactly and through an inverted file."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=datasets_of("search"),
        code=loading_code("evaluate_search"),
    output:
        scores="<results>/scores/search/{suite}/{run}/seed{seed}.parquet",
        times="<benchmarks>/evaluate_search/{suite}/{run}/seed{seed}.times.parquet",
    log:
        "<logs>/evaluate_search/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_search/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem="8GB",
        runtime="1h",
    params:
        config=config_slice(config, suite="suites.search.{suite}"),
        packages=loading_packages("evaluate_search"),
    message:
        "Search with {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.evaluate_search \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} \
            --scores {output.scores:q} --times {output.times:q} >{log:q} 2>&1
        """


rule evaluate_transfer:
    """Linear classifiers on frozen sentence vectors."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=datasets_of("transfer"),
        code=loading_code("evaluate_transfer"),
    output:
        scores="<results>/scores/transfer/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_transfer/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_transfer/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem="16GB",
        runtime="4h",
    params:
        config=config_slice(config, suite="suites.transfer.{suite}"),
        packages=loading_packages("evaluate_transfer"),
    message:
        "Transfer {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.evaluate_transfer \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} --scores {output.scores:q} >{log:q} 2>&1
        """


rule evaluate_cost:
    """Parameters, multiply-accumulates and times, beside those of the encoder that the run started from."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        base=single_encoder_of,
        code=loading_code("evaluate_cost"),
    output:
        scores="<results>/scores/cost/{suite}/{run}/seed{seed}.parquet",
        times="<benchmarks>/evaluate_cost/{suite}/{run}/seed{seed}.times.parquet",
    log:
        "<logs>/evaluate_cost/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_cost/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem="8GB",
        runtime="30m",
    params:
        config=config_slice(config, suite="suites.cost.{suite}"),
        packages=loading_packages("evaluate_cost"),
    message:
        "Count and time {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.evaluate_cost \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --base {input.base:q} --scores {output.scores:q} --times {output.times:q} >{log:q} 2>&1
        """


rule map_attention:
    """Energy of [CLS] in every layer, and maps of the attention weights."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        dataset=dataset_of_energy,
        code=loading_code("map_attention"),
    output:
        scores="<results>/scores/attention/{suite}/{run}/seed{seed}.parquet",
        maps="<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet",
    log:
        "<logs>/map_attention/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/map_attention/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem="8GB",
        runtime="30m",
    params:
        config=config_slice(config, suite="suites.attention.{suite}"),
        packages=loading_packages("map_attention"),
    message:
        "Map the attention of {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.map_attention \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --dataset {input.dataset:q} --scores {output.scores:q} --maps {output.maps:q} >{log:q} 2>&1
        """


rule evaluate_mteb:
    """Lists of mteb's tasks. Finished ones are kept in {output}.checkpoints, where a stopped job goes on."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        code=sources("evaluate_mteb"),
    output:
        scores="<results>/scores/mteb/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_mteb/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_mteb/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem="32GB",
        runtime="24h",
        downloads=1,
    params:
        config=mteb_settings_of,
        packages=versions("evaluate_mteb"),
    message:
        "Run mteb on {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.evaluate_mteb \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --scores {output.scores:q} >{log:q} 2>&1
        """


rule measure_contamination:
    """Evaluation texts that also stand in the text of one corpus; one job a corpus."""
    input:
        train="<results>/corpora/{corpus}/train.parquet",
        datasets=lambda wildcards: [f"<results>/datasets/{name}.parquet" for name in evaluation_sets()],
        code=sources("measure_contamination"),
    output:
        table="<results>/contamination/{corpus}.parquet",
    log:
        "<logs>/measure_contamination/{corpus}.log",
    benchmark:
        "<benchmarks>/measure_contamination/{corpus}.tsv"
    threads: 1
    resources:
        mem="8GB",
        runtime="30m",
    params:
        config=config_slice(config, contamination="contamination"),
        packages=versions("measure_contamination"),
    message:
        "Compare {wildcards.corpus} with the evaluation sets"
    shell:
        r"""
        python -m workflow_scripts.measure_contamination \
            --config {params.config:q} --corpus {wildcards.corpus:q} \
            --train {input.train:q} --datasets {input.datasets:q} --table {output.table:q} >{log:q} 2>&1
        """
