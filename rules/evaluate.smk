"""From runs to scores: one job per run, seed and suite, with one forward pass over the suite's unique sentences.

Inputs:  <results>/runs/{run}/seed{seed}/model/record.json, <results>/datasets/{dataset}.parquet,
         <results>/encoders/{encoder}/record.json where costs are compared, <results>/corpora/{corpus}/train.parquet
Outputs: <results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet, long form (columns.scores.SCORES)
         <results>/contamination/{corpus}.parquet, the overlap of corpora and evaluation sets

Finished tasks of a suite are cached one by one: a job that is stopped and run again, or that has other tasks besides,
takes them from there. Times are no artefacts, and are written below <benchmarks>, like Snakemake's own.
"""


rule evaluate_sts:
    """Correlation of cosines with human judgements, and geometry: alignment, uniformity, isotropy, modulus."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=EVALUATION.datasets,
        code=code_with("evaluate_sts", EVALUATION.modules),
    output:
        scores="<results>/scores/sts/{suite}/{run}/seed{seed}.parquet",
        pairs="<results>/scores/sts/{suite}/{run}/seed{seed}.pairs.parquet",
    log:
        "<logs>/evaluate_sts/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_sts/{suite}/{run}/seed{seed}.tsv"
    resources:
        **REQUESTS.of("evaluate_sts"),
        gpu=EVALUATION.gpus("sts"),
    params:
        **call("evaluate_sts", config_slice(config, suite="suites.sts.{suite}"), EVALUATION.modules),
    shell:
        command("evaluate_sts")


rule evaluate_suite:
    """Suites of every other kind that scores vectors: clustering, transfer, search."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=EVALUATION.datasets,
        code=code_with("evaluate_suite", EVALUATION.suite_modules),
    output:
        scores="<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_suite/{kind}/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_suite/{kind}/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        kind=one_of(kind for kind in EVALUATORS if kind != "sts"),
    threads: lambda wildcards: 8 if wildcards.kind == "transfer" else 1  # classifiers are fitted side by side
    resources:
        **REQUESTS.of("evaluate_suite"),
        gpu=lambda wildcards: EVALUATION.gpus(wildcards.kind),
    params:
        **call(
            "evaluate_suite", config_slice(config, suite="suites.{kind}.{suite}"), EVALUATION.suite_modules
        ),
    shell:
        command("evaluate_suite")


rule evaluate_search:
    """Time of a query, for tables that show it. What a search finds, evaluate_suite scores."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=lambda wildcards: EVALUATION.datasets(wildcards, "search"),
        code=code_with("evaluate_search", EVALUATION.modules),
    output:
        table="<benchmarks>/evaluate_search/{suite}/{run}/seed{seed}.times.parquet",
    log:
        "<logs>/evaluate_search/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_search/{suite}/{run}/seed{seed}.tsv"
    resources:
        **REQUESTS.of("evaluate_search"),
        gpu=EVALUATION.gpus("search"),
    params:
        **call("evaluate_search", config_slice(config, suite="suites.search.{suite}"), EVALUATION.modules),
    shell:
        command("evaluate_search")


rule evaluate_cost:
    """Parameters, multiply-accumulates and times, compared with those of the encoder that the run started from."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        base=EVALUATION.single_encoder,
        code=code_with("evaluate_cost", EVALUATION.modules),
    output:
        scores="<results>/scores/cost/{suite}/{run}/seed{seed}.parquet",
        times="<benchmarks>/evaluate_cost/{suite}/{run}/seed{seed}.times.parquet",
    log:
        "<logs>/evaluate_cost/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_cost/{suite}/{run}/seed{seed}.tsv"
    resources:
        **REQUESTS.of("evaluate_cost"),
    params:
        **call("evaluate_cost", config_slice(config, suite="suites.cost.{suite}"), EVALUATION.modules),
    shell:
        command("evaluate_cost")


rule map_attention:
    """Energy of [CLS] in every layer, and maps of the attention weights."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        dataset=filled(config, "suites.attention.{suite}.energy", "<results>/datasets/{dataset}.parquet"),
        code=code_with("map_attention", EVALUATION.modules),
    output:
        scores="<results>/scores/attention/{suite}/{run}/seed{seed}.parquet",
        maps="<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet",
    log:
        "<logs>/map_attention/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/map_attention/{suite}/{run}/seed{seed}.tsv"
    resources:
        **REQUESTS.of("map_attention"),
    params:
        **call("map_attention", config_slice(config, suite="suites.attention.{suite}"), EVALUATION.modules),
    shell:
        command("map_attention")


rule evaluate_mteb:
    """Lists of mteb's tasks. Its own files lie in {output}.checkpoints, from where they can be submitted."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        tasks="<results>/mteb/{suite}.parquet",
        code=code_of("evaluate_mteb"),
    output:
        scores="<results>/scores/mteb/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_mteb/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_mteb/{suite}/{run}/seed{seed}.tsv"
    resources:
        **REQUESTS.of("evaluate_mteb"),
        gpu=EVALUATION.gpus("mteb"),
    params:
        **call("evaluate_mteb", EVALUATION.mteb_settings),
    shell:
        command("evaluate_mteb")


rule measure_contamination:
    """Evaluation texts that also occur in the text of one corpus; one job per corpus."""
    input:
        train="<results>/corpora/{corpus}/train.parquet",
        datasets=[f"<results>/datasets/{name}.parquet" for name in STUDY.evaluation_sets],
        code=code_of("measure_contamination"),
    output:
        table="<results>/contamination/{corpus}.parquet",
    log:
        "<logs>/measure_contamination/{corpus}.log",
    benchmark:
        "<benchmarks>/measure_contamination/{corpus}.tsv"
    resources:
        **REQUESTS.of("measure_contamination"),
    params:
        **call("measure_contamination", config_slice(config, contamination="contamination")),
    shell:
        command("measure_contamination")
