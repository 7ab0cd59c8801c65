"""From encoders and corpora to runs.

Inputs:  <results>/encoders/{encoder}/record.json, <results>/corpora/{corpus}/{train,dev}.parquet
Outputs: <results>/encoders/{encoder}/ of adapted encoders
         <results>/runs/{run}/seed{seed}/model/, history.parquet and metrics.parquet

Where `training.together` is above 1, a job trains several seeds of a run. It decides no result: inputs, params and
command are the same whatever seeds a job trains, so that Snakemake makes nothing again where it is changed.

Unfinished trainings keep their checkpoints in `<folder>.checkpoints` next to the model, which is not an output of any
rule: a job that is stopped and run again continues from there, and ends with the same bytes.
"""


rule continue_mlm:
    """Adapt one encoder to a corpus by continued masked-language-model training."""
    input:
        base=TRAINING.adapted_base,
        corpus=TRAINING.adapted_corpus,
        code=code_of("jobs.continue_mlm"),
    output:
        record="<results>/encoders/{encoder}/record.json",
        weights="<results>/encoders/{encoder}/model.safetensors",
        history="<results>/encoders/{encoder}.history.parquet",
        speed="<benchmarks>/continue_mlm/{encoder}.speed.parquet",
    log:
        "<logs>/continue_mlm/{encoder}.log",
    benchmark:
        "<benchmarks>/continue_mlm/{encoder}.tsv"
    wildcard_constraints:
        encoder=one_of(STUDY.encoders("adapt")),
    threads: TRAINING.adapting_threads
    resources:
        gpu=1,
        mem=MEMORY.usual(16),
        runtime="4h",
        checkpoint_minutes=TRAINING.adapting_minutes,
    params:
        config=TRAINING.adapting_settings,
        packages=versions("jobs.continue_mlm"),
    message:
        "Adapt encoder {wildcards.encoder} by masked language modelling"
    shell:
        r"""
        python -m workflow_scripts.jobs.continue_mlm \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --encoder {wildcards.encoder:q} \
            --base {input.base:q} --corpus {input.corpus:q} \
            --record {output.record:q} --history {output.history:q} --speed {output.speed:q} \
            --checkpoint_minutes {resources.checkpoint_minutes:q} >{log:q} 2>&1
        """


rule pool_encoder:
    """A frozen encoder as a run: only a readout is added."""
    input:
        encoder=TRAINING.encoder,
        code=TRAINING.code("jobs.pool_encoder"),
    output:
        record="<results>/runs/{run}/seed{seed}/model/record.json",
        modules="<results>/runs/{run}/seed{seed}/model/modules.json",
    log:
        "<logs>/pool_encoder/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/pool_encoder/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(STUDY.frozen),
    threads: 1
    resources:
        mem=MEMORY.reading(4),
        runtime="15m",
    params:
        config=TRAINING.frozen_settings,
        packages=TRAINING.versions("jobs.pool_encoder"),
    message:
        "Pool {wildcards.run}"
    shell:
        r"""
        python -m workflow_scripts.jobs.pool_encoder \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --encoder {input.encoder:q} --record {output.record:q} >{log:q} 2>&1
        """


rule join_encoders:
    """A run made from finished runs: the sum of their vectors, or one of them with another readout."""
    input:
        encoder=TRAINING.encoder,
        code=TRAINING.code("jobs.join_encoders"),
    output:
        record="<results>/runs/{run}/seed{seed}/model/record.json",
        modules="<results>/runs/{run}/seed{seed}/model/modules.json",
    log:
        "<logs>/join_encoders/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/join_encoders/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(STUDY.joined),
    threads: 1
    resources:
        mem=MEMORY.reading(8),
        runtime="15m",
    params:
        config=TRAINING.frozen_settings,
        packages=TRAINING.versions("jobs.join_encoders"),
    message:
        "Join the encoders of {wildcards.run}, seed {wildcards.seed}"
    shell:
        r"""
        python -m workflow_scripts.jobs.join_encoders \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --encoder {input.encoder:q} --record {output.record:q} >{log:q} 2>&1
        """


rule encode_teacher:
    """A finished run's vectors of a corpus, for its students; one job per teacher, corpus and seed."""
    input:
        model=TRAINING.teacher_models,
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=TRAINING.teacher_code,
    output:
        vectors="<results>/teachers/{teacher}/{corpus}/seed{seed}.parquet",
    log:
        "<logs>/encode_teacher/{teacher}/{corpus}/seed{seed}.log",
    benchmark:
        "<benchmarks>/encode_teacher/{teacher}/{corpus}/seed{seed}.tsv"
    wildcard_constraints:
        teacher=one_of(STUDY.encoders("runs")),
    threads: 1
    resources:
        gpu=1,
        mem=MEMORY.encoding(16),
        runtime="4h",
    params:
        config=config_slice(config, teacher="teacher"),
        packages=TRAINING.teacher_versions,
    message:
        "Encode {wildcards.corpus} with teacher {wildcards.teacher}, seed {wildcards.seed}"
    shell:
        r"""
        python -m workflow_scripts.jobs.encode_teacher \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --teacher {wildcards.teacher:q} --corpus {wildcards.corpus:q} \
            --seed {wildcards.seed:q} --model {input.model:q} --sentences {input.sentences:q} \
            --vectors {output.vectors:q} >{log:q} 2>&1
        """


rule train_encoder:
    """Fine-tune one encoder; one job per run and seed."""
    input:
        encoder=TRAINING.encoder,
        corpus=TRAINING.corpus,
        dev=TRAINING.development,
        exemplars=TRAINING.exemplars,
        words=TRAINING.words,
        teacher=TRAINING.teacher,
        code=TRAINING.code("jobs.train_encoder"),
    output:
        record="<results>/runs/{run}/seed{seed}/model/record.json",
        modules="<results>/runs/{run}/seed{seed}/model/modules.json",
        history="<results>/runs/{run}/seed{seed}/history.parquet",
        metrics="<results>/runs/{run}/seed{seed}/metrics.parquet",
        speed="<benchmarks>/train_encoder/{run}/seed{seed}.speed.parquet",
    log:
        "<logs>/train_encoder/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/train_encoder/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(STUDY.trained),
    threads: TRAINING.threads()
    resources:
        gpu=TRAINING.gpus,
        nodes=1,  # a site may spread a training over several: docs/cluster.md
        mem=MEMORY.training(16),
        runtime="8h",
        checkpoint_minutes=TRAINING.checkpoint_minutes,
        launcher=TRAINING.launcher,
        seeds=lambda wildcards: wildcards.seed,
    params:
        config=TRAINING.settings,
        packages=TRAINING.versions("jobs.train_encoder"),
    message:
        "Train {wildcards.run}, seed {wildcards.seed}"
    shell:
        r"""
        {resources.launcher} workflow_scripts.jobs.train_encoder \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --run {wildcards.run:q} --seed {resources.seeds} \
            --encoder {input.encoder:q} --corpus {input.corpus:q} --dev {input.dev:q} \
            --exemplars {input.exemplars:q} --words {input.words:q} --teacher {input.teacher:q} \
            --record {output.record:q} --history {output.history:q} --metrics {output.metrics:q} \
            --speed {output.speed:q} \
            --checkpoint_minutes {resources.checkpoint_minutes:q} >{log[0]:q} 2>&1
        """


for seeds, runs in TRAINING.side_by_side.items():

    rule:
        """Some seeds of a run, side by side on one card; each is a job of its own, which could have run alone."""
        name:
            f"train_encoder_{together(seeds)}"
        input:
            encoder=TRAINING.encoder,
            corpus=TRAINING.corpus,
            dev=TRAINING.development,
            exemplars=TRAINING.exemplars,
            words=TRAINING.words,
            teacher=TRAINING.teacher,
            code=TRAINING.code("jobs.train_encoder"),
        output:
            record=[f"<results>/runs/{{run}}/seed{seed}/model/record.json" for seed in seeds],
            modules=[f"<results>/runs/{{run}}/seed{seed}/model/modules.json" for seed in seeds],
            history=[f"<results>/runs/{{run}}/seed{seed}/history.parquet" for seed in seeds],
            metrics=[f"<results>/runs/{{run}}/seed{seed}/metrics.parquet" for seed in seeds],
            speed=[f"<benchmarks>/train_encoder/{{run}}/seed{seed}.speed.parquet" for seed in seeds],
        log:
            [f"<logs>/train_encoder/{{run}}/seed{seed}.log" for seed in seeds],
        benchmark:
            f"<benchmarks>/train_encoder/{{run}}/{together(seeds)}.tsv"
        wildcard_constraints:
            run=one_of(runs),
        threads: TRAINING.threads(len(seeds))
        resources:
            gpu=1,
            nodes=1,
            mem=MEMORY.training(16, len(seeds)),
            runtime=TIMES.side_by_side(8 * 60, len(seeds)),
            checkpoint_minutes=TRAINING.checkpoint_minutes,
            launcher=BESIDE,
            seeds=" ".join(map(str, seeds)),
        params:
            config=TRAINING.settings,
            packages=TRAINING.versions("jobs.train_encoder"),
        message:
            "Train {wildcards.run}, seeds {resources.seeds} side by side"
        # The very same text: Snakemake compares it, and what was trained alone is not outdated by it.
        shell:
            rules.train_encoder.rule.shellcmd

    workflow.ruleorder(f"train_encoder_{together(seeds)}", "train_encoder")
