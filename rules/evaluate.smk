"""From runs to scores: one job per run, seed and suite, with one forward pass over the suite's unique sentences.

Finished tasks of a suite are cached one by one: a job that is stopped and run again, or that has other tasks besides,
takes them from there. Times are no artefacts, and are written below <benchmarks>, like Snakemake's own.
"""

of_kind = lambda w: [f"evaluation.{w.kind}", *loading(w)]
of_sts = lambda w: ["evaluation.sts", *loading(w)]


rule evaluate_sts:
    """Correlation of cosines with human judgements, and geometry: alignment, uniformity, isotropy, modulus."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=lambda w: suite(w).datasets,
        code=code("evaluation.task_by_task", of_sts),
    output:
        scores="<results>/scores/sts/{suite}/{run}/seed{seed}.parquet",
        pairs="<results>/scores/sts/{suite}/{run}/seed{seed}.pairs.parquet",
    log:
        "<logs>/evaluate_sts/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_sts/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=one_of(SETTINGS.suites.sts),
    resources:
        **ask(8, hours=1, loads=of_run),
        gpu=on_gpu("sts"),
    params:
        **call("evaluation.task_by_task", settings(suite="suites.sts.{suite}"), of_sts),
    shell:
        command("evaluate_sts")


rule evaluate_suite:
    """Suites of every other kind that scores vectors: clustering, transfer, search."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=lambda w: suite(w).datasets,
        code=code("evaluation.task_by_task", of_kind),
    output:
        scores="<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_suite/{kind}/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_suite/{kind}/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        # Where the next folder is a suite of the kind.
        kind="|".join(
            f"{kind}(?=/{one_of(named)}/)"
            for kind, named in SETTINGS.suites.by_kind.items()
            if kind in EVALUATORS and kind != "sts"
        ),
    threads: lambda wildcards: 8 if wildcards.kind == "transfer" else 1  # classifiers are fitted side by side
    resources:
        **ask(16, hours=4, loads=of_run),
        gpu=lambda w: on_gpu(w.kind),
    params:
        **call("evaluation.task_by_task", settings(suite="suites.{kind}.{suite}"), of_kind),
    shell:
        command("evaluate_suite")


rule evaluate_search:
    """Time of a query, for tables that show it. What a search finds, evaluate_suite scores."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=lambda w: suite(w).datasets,
        code=code("evaluation.search", loading),
    output:
        table="<benchmarks>/evaluate_search/{suite}/{run}/seed{seed}.times.parquet",
    log:
        "<logs>/evaluate_search/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_search/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=one_of(SETTINGS.suites.search),
    resources:
        **ask(16, hours=1, loads=of_run),
        gpu=on_gpu("search"),
    params:
        **call("evaluation.search", settings(suite="suites.search.{suite}"), loading),
    shell:
        command("evaluate_search")


rule evaluate_cost:
    """Parameters, multiply-accumulates and times, compared with those of the encoder that the run started from."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        base=filled("<results>/encoders/{first_encoder}/record.json", run),
        code=code("evaluation.cost", loading),
    output:
        scores="<results>/scores/cost/{suite}/{run}/seed{seed}.parquet",
        times="<benchmarks>/evaluate_cost/{suite}/{run}/seed{seed}.times.parquet",
    log:
        "<logs>/evaluate_cost/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_cost/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=one_of(SETTINGS.suites.cost),
    resources:
        **ask(8, minutes=30, loads=of_run),
    params:
        **call("evaluation.cost", settings(suite="suites.cost.{suite}"), loading),
    shell:
        command("evaluate_cost")


rule map_attention:
    """Energy of [CLS] in every layer, and maps of the attention weights."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        dataset=filled("<results>/datasets/{dataset}.parquet", block("suites.attention.{suite}.energy")),
        code=code("evaluation.attention", loading),
    output:
        scores="<results>/scores/attention/{suite}/{run}/seed{seed}.parquet",
        maps="<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet",
    log:
        "<logs>/map_attention/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/map_attention/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=one_of(SETTINGS.suites.attention),
    resources:
        **ask(8, minutes=30, loads=of_run),
    params:
        **call("evaluation.attention", settings(suite="suites.attention.{suite}"), loading),
    shell:
        command("map_attention")


rule evaluate_mteb:
    """Lists of mteb's tasks. Its own files lie in {output}.checkpoints, from where they can be submitted."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        tasks="<results>/mteb/{suite}.parquet",
        code=code("evaluation.mteb_scores"),
    output:
        scores="<results>/scores/mteb/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_mteb/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_mteb/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=one_of(SETTINGS.suites.mteb),
    resources:
        **ask(32, hours=24, loads=of_run),
        gpu=on_gpu("mteb"),
    params:
        **call("evaluation.mteb_scores", parts(suite, "lists", suite="block")),
    shell:
        command("evaluate_mteb")


rule measure_contamination:
    """Evaluation texts that also occur in the text of one corpus; one job per corpus."""
    input:
        train="<results>/corpora/{corpus}/train.parquet",
        datasets=collect("<results>/datasets/{name}.parquet", name=STUDY.evaluation_sets),
        code=code("data.contamination"),
    output:
        table="<results>/contamination/{corpus}.parquet",
    log:
        "<logs>/measure_contamination/{corpus}.log",
    benchmark:
        "<benchmarks>/measure_contamination/{corpus}.tsv"
    resources:
        **ask(8, minutes=30),
    params:
        **call("data.contamination", settings(contamination="contamination")),
    shell:
        command("measure_contamination")
