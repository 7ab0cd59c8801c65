"""From runs to scores: one job per run, seed and suite, with one forward pass over the suite's unique sentences.

Finished tasks of a suite are cached one by one: a job that was stopped, or that has further tasks, restores them. Times
are no artefacts and are written below <benchmarks>, like Snakemake's own.
"""

# Modules that a job imports by name: the evaluator of its kind of suite, and those that load the run's model.
sts_modules = lambda w: ["evaluation.sts", *model_modules(w)]
suite_modules = lambda w: [f"evaluation.{w.kind}", *model_modules(w)]


evaluate_sts = JobSpec(
    "evaluation.task_by_task.evaluate_sts",
    settings=config_settings(suite="suites.sts.{suite}"),
    imports=sts_modules,
)


rule evaluate_sts:
    """Correlate cosines with human judgements, and measure geometry: alignment, uniformity, isotropy, modulus."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=lambda w: suite(w).datasets,
        code=evaluate_sts.code,
    output:
        scores="<results>/scores/sts/{suite}/{run}/seed{seed}.parquet",
        pairs="<results>/scores/sts/{suite}/{run}/seed{seed}.pairs.parquet",
    log:
        "<logs>/evaluate_sts/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_sts/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=name_pattern(SETTINGS.suites.sts),
    resources:
        **job_resources(gigabytes=8, hours=1, encoders=run_encoder),
        gpu=on_gpu("sts"),
    params:
        **evaluate_sts.params,
    message:
        "Evaluate {wildcards.run} (seed {wildcards.seed}) on STS suite {wildcards.suite}; log: {log}"
    shell:
        evaluate_sts.shell


evaluate_suite = JobSpec(
    "evaluation.task_by_task.evaluate_suite",
    settings=config_settings(suite="suites.{kind}.{suite}"),
    imports=suite_modules,
)


rule evaluate_suite:
    """Evaluate suites of all other kinds that score vectors: clustering, transfer, search."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=lambda w: suite(w).datasets,
        code=evaluate_suite.code,
    output:
        scores="<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_suite/{kind}/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_suite/{kind}/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        # One of these kinds, followed by one of its suites: {kind}/{suite}/. Other kinds have rules of their own.
        kind="|".join(
            f"{kind}(?=/{name_pattern(named)}/)"
            for kind, named in SETTINGS.suites.by_kind.items()
            if kind in EVALUATORS and kind != "sts"
        ),
    threads: lambda w: SUITES[w.kind].threads
    resources:
        **job_resources(gigabytes=16, hours=4, encoders=run_encoder),
        gpu=lambda w: on_gpu(w.kind),
    params:
        **evaluate_suite.params,
    message:
        "Evaluate {wildcards.run} (seed {wildcards.seed}) on {wildcards.kind} suite {wildcards.suite}; log: {log}"
    shell:
        evaluate_suite.shell


time_search = JobSpec(
    "evaluation.search.time_search",
    settings=config_settings(suite="suites.search.{suite}"),
    imports=model_modules,
)


rule time_search:
    """Measure the time of a query, for tables that show it; evaluate_suite scores the hits."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=lambda w: suite(w).datasets,
        code=time_search.code,
    output:
        table="<benchmarks>/times/search/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/time_search/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/time_search/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=name_pattern(SETTINGS.suites.search),
    resources:
        **job_resources(gigabytes=16, hours=1, encoders=run_encoder),
        gpu=on_gpu("search"),
    params:
        **time_search.params,
    message:
        "Time queries of {wildcards.run} (seed {wildcards.seed}) on suite {wildcards.suite}; log: {log}"
    shell:
        time_search.shell


evaluate_cost = JobSpec(
    "evaluation.cost.evaluate_cost",
    settings=config_settings(suite="suites.cost.{suite}"),
    imports=model_modules,
)


rule evaluate_cost:
    """Measure parameters, multiply-accumulates and times, compared with the encoder from which the run started."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        base=path_if_set("<results>/encoders/{first_encoder}/record.json", run),
        code=evaluate_cost.code,
    output:
        scores="<results>/scores/cost/{suite}/{run}/seed{seed}.parquet",
        times="<benchmarks>/times/cost/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_cost/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_cost/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=name_pattern(SETTINGS.suites.cost),
    resources:
        **job_resources(gigabytes=8, minutes=30, encoders=run_encoder),
    params:
        **evaluate_cost.params,
    message:
        "Measure the cost of {wildcards.run} (seed {wildcards.seed}), suite {wildcards.suite}; log: {log}"
    shell:
        evaluate_cost.shell


map_attention = JobSpec(
    "evaluation.attention.map_attention",
    settings=config_settings(suite="suites.attention.{suite}"),
    imports=model_modules,
)


rule map_attention:
    """Measure the energy of [CLS] in every layer, and map attention weights."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        dataset=path_if_set(
            "<results>/datasets/{dataset}.parquet", setting("suites.attention.{suite}.energy")
        ),
        code=map_attention.code,
    output:
        scores="<results>/scores/attention/{suite}/{run}/seed{seed}.parquet",
        maps="<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet",
    log:
        "<logs>/map_attention/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/map_attention/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=name_pattern(SETTINGS.suites.attention),
    resources:
        **job_resources(gigabytes=8, minutes=30, encoders=run_encoder),
    params:
        **map_attention.params,
    message:
        "Map the attention of {wildcards.run} (seed {wildcards.seed}), suite {wildcards.suite}; log: {log}"
    shell:
        map_attention.shell


evaluate_mteb = JobSpec(
    "evaluation.mteb_scores.evaluate_mteb",
    settings=settings_of(suite, "lists", suite="block"),
)


rule evaluate_mteb:
    """Evaluate lists of mteb's tasks; mteb's own files, which can be submitted, are in {output}.checkpoints."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        tasks="<results>/mteb/{suite}.parquet",
        code=evaluate_mteb.code,
    output:
        scores="<results>/scores/mteb/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_mteb/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_mteb/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        suite=name_pattern(SETTINGS.suites.mteb),
    resources:
        **job_resources(gigabytes=32, hours=24, encoders=run_encoder),
        gpu=on_gpu("mteb"),
    params:
        **evaluate_mteb.params,
    message:
        "Evaluate {wildcards.run} (seed {wildcards.seed}) on mteb's tasks of suite {wildcards.suite}; log: {log}"
    shell:
        evaluate_mteb.shell


measure_contamination = JobSpec(
    "data.contamination.measure_contamination",
    settings=config_settings(contamination="contamination"),
)


rule measure_contamination:
    """Count evaluation texts that also occur in one corpus; one job per corpus."""
    input:
        train="<results>/corpora/{corpus}/train.parquet",
        datasets=collect("<results>/datasets/{name}.parquet", name=STUDY.evaluation_sets),
        code=measure_contamination.code,
    output:
        table="<results>/contamination/{corpus}.parquet",
    log:
        "<logs>/measure_contamination/{corpus}.log",
    benchmark:
        "<benchmarks>/measure_contamination/{corpus}.tsv"
    resources:
        **job_resources(gigabytes=8, minutes=30),
    params:
        **measure_contamination.params,
    message:
        "Look for evaluation texts in corpus {wildcards.corpus}; log: {log}"
    shell:
        measure_contamination.shell
