"""From runs to scores: one job per run, seed and suite, with one forward pass over the suite's unique sentences.

Inputs:  <results>/runs/{run}/seed{seed}/model/record.json, <results>/datasets/{dataset}.parquet,
         <results>/encoders/{encoder}/record.json where costs are compared, <results>/corpora/{corpus}/train.parquet
Outputs: <results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet, long form (columns.scores.SCORES)
         <results>/contamination/{corpus}.parquet, the overlap of corpora and evaluation sets

Finished tasks of a suite are kept in `<scores>.checkpoints` next to the scores, which is not an output of any rule: a
job that is stopped and run again, or that has other tasks besides, takes them from there.

Times differ from run to run. They are written below <benchmarks>, like Snakemake's own, and are not artefacts.
"""


rule evaluate_sts:
    """Correlation of cosines with human judgements: Spearman and Pearson, `all`, `wmean` and `mean`."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=EVALUATION.datasets("sts"),
        code=EVALUATION.code("jobs.evaluate_sts"),
    output:
        scores="<results>/scores/sts/{suite}/{run}/seed{seed}.parquet",
        pairs="<results>/scores/sts/{suite}/{run}/seed{seed}.pairs.parquet",
    log:
        "<logs>/evaluate_sts/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_sts/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        gpu=EVALUATION.gpus("sts"),
        mem=MEMORY.evaluating(8, "sts"),
        runtime=TIMES.evaluating(30, "sts"),
    params:
        config=config_slice(config, suite="suites.sts.{suite}"),
        packages=EVALUATION.versions("jobs.evaluate_sts"),
    message:
        "Evaluate {wildcards.run}, seed {wildcards.seed}, on pairs of {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.jobs.evaluate_sts \
            --code {input.code:q} --packages {params.packages:q} \
            --gpus {resources.gpu:q} --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} \
            --scores {output.scores:q} --pairs {output.pairs:q} >{log:q} 2>&1
        """


rule evaluate_geometry:
    """Alignment, uniformity, isotropy, modulus and mean cosine."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=EVALUATION.datasets("geometry"),
        code=EVALUATION.code("jobs.evaluate_geometry"),
    output:
        scores="<results>/scores/geometry/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_geometry/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_geometry/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        gpu=EVALUATION.gpus("geometry"),
        mem=MEMORY.evaluating(8, "geometry"),
        runtime=TIMES.evaluating(30, "geometry"),
    params:
        config=config_slice(config, suite="suites.geometry.{suite}"),
        packages=EVALUATION.versions("jobs.evaluate_geometry"),
    message:
        "Measure the space of {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.jobs.evaluate_geometry \
            --code {input.code:q} --packages {params.packages:q} \
            --gpus {resources.gpu:q} --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} --scores {output.scores:q} >{log:q} 2>&1
        """


for pair, runs in EVALUATION.joint.items():

    rule:
        """Scored pairs, and the geometry of the same run, which is measured behind them in the same process."""
        name:
            f"evaluate_{pair.sts}_with_{pair.geometry}"
        input:
            model="<results>/runs/{run}/seed{seed}/model/record.json",
            datasets=EVALUATION.datasets_of("sts", pair.sts),
            measured=EVALUATION.datasets_of("geometry", pair.geometry),
            code=EVALUATION.code("jobs.evaluate_sts"),
            measuring=EVALUATION.code("jobs.evaluate_geometry"),
        output:
            scores=f"<results>/scores/sts/{pair.sts}/{{run}}/seed{{seed}}.parquet",
            pairs=f"<results>/scores/sts/{pair.sts}/{{run}}/seed{{seed}}.pairs.parquet",
            geometry=f"<results>/scores/geometry/{pair.geometry}/{{run}}/seed{{seed}}.parquet",
        log:
            f"<logs>/evaluate_sts/{pair.sts}/{{run}}/seed{{seed}}.log",
        benchmark:
            f"<benchmarks>/evaluate_sts/{pair.sts}/{{run}}/seed{{seed}}.tsv"
        wildcard_constraints:
            run=places(runs),
        group:
            lambda wildcards: None if workflow.local_exec else EVALUATION.group("sts", "geometry")
        threads: 1
        resources:
            gpu=EVALUATION.gpus("sts", "geometry"),
            mem=MEMORY.evaluating(8, suites=pair.suites),
            runtime=TIMES.evaluating(30, suites=pair.suites),
        params:
            suite=pair.sts,
            space=pair.geometry,
            config=EVALUATION.suite("sts", pair.sts),
            measure=EVALUATION.suite_beside(pair),
            packages=EVALUATION.versions("jobs.evaluate_sts"),
            measuring=EVALUATION.versions("jobs.evaluate_geometry"),
        message:
            "Evaluate {wildcards.run}, seed {wildcards.seed}, on pairs of {params.suite}, and measure its space"
        shell:
            r"""
            python -m workflow_scripts.jobs evaluate_sts \
                --code {input.code:q} --packages {params.packages:q} \
                --gpus {resources.gpu:q} --config {params.config:q} --suite {params.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
                --model {input.model:q} --datasets {input.datasets:q} \
                --scores {output.scores:q} --pairs {output.pairs:q} \
                --then evaluate_geometry \
                --code {input.measuring:q} --packages {params.measuring:q} \
                --gpus {resources.gpu:q} --config {params.measure:q} --suite {params.space:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
                --model {input.model:q} --datasets {input.measured:q} --beside {input.datasets:q} \
                --scores {output.geometry:q} >{log:q} 2>&1
            """

    # What ``ruleorder:`` stands for, which takes no names of rules that are computed.
    workflow.ruleorder(f"evaluate_{pair.sts}_with_{pair.geometry}", "evaluate_sts", "evaluate_geometry")


rule evaluate_suite:
    """Suites of every kind that has an evaluator and no rule of its own: clustering, transfer."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=lambda wildcards: EVALUATION.datasets(wildcards.kind)(wildcards),
        code=EVALUATION.suite_code,
    output:
        scores="<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_suite/{kind}/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_suite/{kind}/{suite}/{run}/seed{seed}.tsv"
    wildcard_constraints:
        kind=one_of(evaluators()),
    threads: 1
    resources:
        gpu=lambda wildcards: EVALUATION.gpus(wildcards.kind),
        mem=MEMORY.evaluating(16),
        runtime=TIMES.evaluating(4 * 60),
    params:
        config=config_slice(config, suite="suites.{kind}.{suite}"),
        packages=EVALUATION.suite_versions,
    message:
        "Evaluate {wildcards.run}, seed {wildcards.seed}, by {wildcards.kind}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.jobs.evaluate_suite \
            --code {input.code:q} --packages {params.packages:q} \
            --gpus {resources.gpu:q} --config {params.config:q} --kind {wildcards.kind:q} --suite {wildcards.suite:q} \
            --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} --scores {output.scores:q} >{log:q} 2>&1
        """


rule evaluate_search:
    """Duplicate questions found by cosine, exactly and through an inverted file."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        datasets=EVALUATION.datasets("search"),
        code=EVALUATION.code("jobs.evaluate_search"),
    output:
        scores="<results>/scores/search/{suite}/{run}/seed{seed}.parquet",
        times="<benchmarks>/evaluate_search/{suite}/{run}/seed{seed}.times.parquet",
    log:
        "<logs>/evaluate_search/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_search/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        gpu=EVALUATION.gpus("search"),
        mem=MEMORY.evaluating(8, "search"),
        runtime=TIMES.evaluating(60, "search"),
    params:
        config=config_slice(config, suite="suites.search.{suite}"),
        packages=EVALUATION.versions("jobs.evaluate_search"),
    message:
        "Search with {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.jobs.evaluate_search \
            --code {input.code:q} --packages {params.packages:q} \
            --gpus {resources.gpu:q} --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --datasets {input.datasets:q} \
            --scores {output.scores:q} --times {output.times:q} >{log:q} 2>&1
        """


rule evaluate_cost:
    """Parameters, multiply-accumulates and times, compared with those of the encoder that the run started from."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        base=EVALUATION.single_encoder,
        code=EVALUATION.code("jobs.evaluate_cost"),
    output:
        scores="<results>/scores/cost/{suite}/{run}/seed{seed}.parquet",
        times="<benchmarks>/evaluate_cost/{suite}/{run}/seed{seed}.times.parquet",
    log:
        "<logs>/evaluate_cost/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_cost/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem=MEMORY.reading(8),
        runtime="30m",
    params:
        config=config_slice(config, suite="suites.cost.{suite}"),
        packages=EVALUATION.versions("jobs.evaluate_cost"),
    message:
        "Count and time {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.jobs.evaluate_cost \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --base {input.base:q} --scores {output.scores:q} --times {output.times:q} >{log:q} 2>&1
        """


rule map_attention:
    """Energy of [CLS] in every layer, and maps of the attention weights."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        dataset=EVALUATION.energy_dataset,
        code=EVALUATION.code("jobs.map_attention"),
    output:
        scores="<results>/scores/attention/{suite}/{run}/seed{seed}.parquet",
        maps="<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet",
    log:
        "<logs>/map_attention/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/map_attention/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        mem=MEMORY.reading(8),
        runtime="30m",
    params:
        config=config_slice(config, suite="suites.attention.{suite}"),
        packages=EVALUATION.versions("jobs.map_attention"),
    message:
        "Map the attention of {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.jobs.map_attention \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --dataset {input.dataset:q} --scores {output.scores:q} --maps {output.maps:q} >{log:q} 2>&1
        """


rule evaluate_mteb:
    """Lists of mteb's tasks. Finished tasks are kept in {output}.checkpoints, from where a stopped job continues."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        tasks="<results>/mteb/{suite}.parquet",
        code=code_of("jobs.evaluate_mteb"),
    output:
        scores="<results>/scores/mteb/{suite}/{run}/seed{seed}.parquet",
    log:
        "<logs>/evaluate_mteb/{suite}/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/evaluate_mteb/{suite}/{run}/seed{seed}.tsv"
    threads: 1
    resources:
        gpu=EVALUATION.gpus("mteb"),
        mem=MEMORY.evaluating(32, "mteb"),
        runtime=TIMES.evaluating(24 * 60, "mteb"),
    params:
        config=EVALUATION.mteb_settings,
        packages=versions("jobs.evaluate_mteb"),
    message:
        "Run mteb on {wildcards.run}, seed {wildcards.seed}: {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.jobs.evaluate_mteb \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --suite {wildcards.suite:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --model {input.model:q} --tasks {input.tasks:q} --scores {output.scores:q} >{log:q} 2>&1
        """


rule measure_contamination:
    """Evaluation texts that also occur in the text of one corpus; one job per corpus."""
    input:
        train="<results>/corpora/{corpus}/train.parquet",
        datasets=EVALUATION.contamination_sets(),
        code=code_of("jobs.measure_contamination"),
    output:
        table="<results>/contamination/{corpus}.parquet",
    log:
        "<logs>/measure_contamination/{corpus}.log",
    benchmark:
        "<benchmarks>/measure_contamination/{corpus}.tsv"
    threads: 1
    resources:
        mem=MEMORY.usual(8),
        runtime="30m",
    params:
        config=config_slice(config, contamination="contamination"),
        packages=versions("jobs.measure_contamination"),
    message:
        "Compare {wildcards.corpus} with the evaluation sets"
    shell:
        r"""
        python -m workflow_scripts.jobs.measure_contamination \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --corpus {wildcards.corpus:q} \
            --train {input.train:q} --datasets {input.datasets:q} --table {output.table:q} >{log:q} 2>&1
        """
