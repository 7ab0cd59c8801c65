"""Encoders and corpora to runs.

Inputs:  <results>/encoders/{encoder}/record.json, <results>/corpora/{corpus}/{train,dev}.parquet
Outputs: <results>/encoders/{encoder}/ of adapted encoders
         <results>/runs/{run}/seed{seed}/model/, history.parquet and watched.parquet

Unfinished trainings keep their checkpoints in `<folder>.checkpoints` beside the model, which is no
output of a rule: a job that is stopped and run again goes on from there, to the same bytes.
"""


rule continue_mlm:
    """Adapt one encoder to a corpus by continued masked-language-model training."""
    input:
        base=lambda wildcards: f"<results>/encoders/{config['encoders'][wildcards.encoder]['adapt']['base']}/record.json",
        corpus=lambda wildcards: f"<results>/corpora/{config['encoders'][wildcards.encoder]['adapt']['corpus']}/train.parquet",
        code=sources("continue_mlm"),
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
        encoder=one_of(ADAPTED),
    threads: config["continue_mlm"]["training"]["cpu_threads"]
    resources:
        gpu=1,
        mem="16GB",
        runtime="4h",
    params:
        config=config_slice(config, continue_mlm="continue_mlm", adapt="encoders.{encoder}.adapt"),
        packages=versions("continue_mlm"),
    message:
        "Adapt encoder {wildcards.encoder} by masked language modelling"
    shell:
        r"""
        python -m workflow_scripts.continue_mlm \
            --config {params.config:q} --encoder {wildcards.encoder:q} \
            --base {input.base:q} --corpus {input.corpus:q} \
            --record {output.record:q} --history {output.history:q} --speed {output.speed:q} >{log:q} 2>&1
        """


rule pool_encoder:
    """The untrained encoder as a run: a pooler and nothing else."""
    input:
        encoder=encoder_of,
        code=training_code("pool_encoder"),
    output:
        record="<results>/runs/{run}/seed{seed}/model/record.json",
        weights="<results>/runs/{run}/seed{seed}/model/model.safetensors",
    log:
        "<logs>/pool_encoder/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/pool_encoder/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of([name for name in UNTRAINED if name not in JOINED]),
    threads: 1
    resources:
        mem="4GB",
        runtime="15m",
    params:
        config=untrained_settings_of,
        packages=training_packages("pool_encoder"),
    message:
        "Pool {wildcards.run}"
    shell:
        r"""
        python -m workflow_scripts.pool_encoder \
            --config {params.config:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --encoder {input.encoder:q} --record {output.record:q} >{log:q} 2>&1
        """


rule join_encoders:
    """Finished runs as one: their vectors added up, or one of them read in another way."""
    input:
        encoder=encoder_of,
        code=lambda wildcards: sources("join_encoders", *joining_modules(wildcards)),
    output:
        record="<results>/runs/{run}/seed{seed}/model/record.json",
        weights="<results>/runs/{run}/seed{seed}/model/model.safetensors",
    log:
        "<logs>/join_encoders/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/join_encoders/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(JOINED),
    threads: 1
    resources:
        mem="8GB",
        runtime="15m",
    params:
        config=untrained_settings_of,
        packages=lambda wildcards: versions("join_encoders", *joining_modules(wildcards)),
    message:
        "Join the encoders of {wildcards.run}, seed {wildcards.seed}"
    shell:
        r"""
        python -m workflow_scripts.join_encoders \
            --config {params.config:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --encoder {input.encoder:q} --record {output.record:q} >{log:q} 2>&1
        """


rule encode_teacher:
    """A finished run's vectors of a corpus, for its students; one job a teacher, corpus and seed."""
    input:
        model=lambda wildcards: models_of(wildcards.teacher, wildcards.seed),
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=lambda wildcards: sources("encode_teacher", *modules_behind(wildcards.teacher)),
    output:
        vectors="<results>/teachers/{teacher}/{corpus}/seed{seed}.parquet",
    log:
        "<logs>/encode_teacher/{teacher}/{corpus}/seed{seed}.log",
    benchmark:
        "<benchmarks>/encode_teacher/{teacher}/{corpus}/seed{seed}.tsv"
    wildcard_constraints:
        teacher=one_of(OF_RUNS),
    threads: 1
    resources:
        gpu=1,
        mem="16GB",
        runtime="4h",
    params:
        config=config_slice(config, teacher="teacher"),
        packages=lambda wildcards: versions("encode_teacher", *modules_behind(wildcards.teacher)),
    message:
        "Encode {wildcards.corpus} with teacher {wildcards.teacher}, seed {wildcards.seed}"
    shell:
        r"""
        python -m workflow_scripts.encode_teacher \
            --config {params.config:q} --teacher {wildcards.teacher:q} --corpus {wildcards.corpus:q} \
            --seed {wildcards.seed:q} --model {input.model:q} --sentences {input.sentences:q} \
            --vectors {output.vectors:q} >{log:q} 2>&1
        """


rule train_encoder:
    """Fine-tune one encoder; one job a run and seed."""
    input:
        encoder=encoder_of,
        corpus=corpus_of,
        dev=development_of,
        exemplars=exemplars_of,
        words=words_of,
        teacher=teacher_of,
        code=training_code("train_encoder"),
    output:
        record="<results>/runs/{run}/seed{seed}/model/record.json",
        weights="<results>/runs/{run}/seed{seed}/model/model.safetensors",
        history="<results>/runs/{run}/seed{seed}/history.parquet",
        watched="<results>/runs/{run}/seed{seed}/watched.parquet",
        speed="<benchmarks>/train_encoder/{run}/seed{seed}.speed.parquet",
    log:
        "<logs>/train_encoder/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/train_encoder/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(TRAINED),
    threads: config["training"]["cpu_threads"]
    resources:
        gpu=gpus_of,
        mem="16GB",
        runtime="8h",
    params:
        config=settings_of,
        launcher=launcher_of,
        packages=training_packages("train_encoder"),
    message:
        "Train {wildcards.run}, seed {wildcards.seed}"
    shell:
        r"""
        {params.launcher} workflow_scripts.train_encoder \
            --config {params.config:q} --run {wildcards.run:q} --seed {wildcards.seed:q} \
            --encoder {input.encoder:q} --corpus {input.corpus:q} --dev {input.dev:q} \
            --exemplars {input.exemplars:q} --words {input.words:q} --teacher {input.teacher:q} \
            --record {output.record:q} --history {output.history:q} --watched {output.watched:q} \
            --speed {output.speed:q} >{log:q} 2>&1
        """
