"""Runs to scores: one job a run, seed and suite, one forward pass over the suite's unique sentences.

Inputs:  <results>/runs/{run}/seed{seed}/model/record.json, <results>/datasets/{dataset}.parquet
Outputs: <results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet, long form (schemas.SCORES)
"""


rule evaluate_sts:
    """Correlation with human judgements: `all`, `wmean` and `mean`, Spearman and Pearson."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=datasets_of("sts"),
        code=sources("evaluate_sts"),
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
        packages=versions("evaluate_sts"),
    shell:
        r"""
        python -m workflow_scripts.evaluate_sts \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} \
            --scores {output.scores:q} --pairs {output.pairs:q} >{log:q} 2>&1
        """


def datasets_of_geometry(wildcards):
    """The datasets that a geometry suite measures on."""
    suite = config["suites"]["geometry"][wildcards.suite]
    measures = [*suite["positives"].values(), *suite["clouds"].values()]
    return [
        f"<results>/datasets/{name}.parquet" for name in sorted({measure["dataset"] for measure in measures})
    ]


rule evaluate_geometry:
    """Alignment, uniformity, isotropy, modulus and mean cosine."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=datasets_of_geometry,
        code=sources("evaluate_geometry"),
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
        packages=versions("evaluate_geometry"),
    shell:
        r"""
        python -m workflow_scripts.evaluate_geometry \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} --scores {output.scores:q} >{log:q} 2>&1
        """
