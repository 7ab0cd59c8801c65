"""From encoders and corpora to runs.

Inputs:  <results>/encoders/{encoder}/record.json, <results>/corpora/{corpus}/{train,dev}.parquet
Outputs: <results>/encoders/{encoder}/ of adapted encoders, <results>/runs/{run}/seed{seed}/ with model and history

Unfinished trainings keep their checkpoints in `<folder>.checkpoints` next to the model, which is not an output of any
rule: a job that is stopped and run again continues from there, and ends with the same bytes.
"""


rule continue_mlm:
    """Adapt one encoder to a corpus by continued masked-language-model training."""
    input:
        base=filled(config, "encoders.{encoder}.adapt", "<results>/encoders/{base}/record.json"),
        corpus=filled(config, "encoders.{encoder}.adapt", "<results>/corpora/{corpus}/train.parquet"),
        code=code_of("continue_mlm"),
    output:
        "<results>/encoders/{encoder}/model.safetensors",
        record="<results>/encoders/{encoder}/record.json",
        history="<results>/encoders/{encoder}.history.parquet",
        speed="<benchmarks>/continue_mlm/{encoder}.speed.parquet",
    log:
        "<logs>/continue_mlm/{encoder}.log",
    benchmark:
        "<benchmarks>/continue_mlm/{encoder}.tsv"
    wildcard_constraints:
        encoder=one_of(STUDY.encoders("adapt")),
    threads: TRAINING.of_training("cpu_threads")
    resources:
        **REQUESTS.of("continue_mlm"),
        gpu=1,
        checkpoint_minutes=TRAINING.of_training("checkpoint_minutes", str),
    params:
        **call("continue_mlm", TRAINING.adapting_settings),
    shell:
        command("continue_mlm")


rule pool_encoder:
    """A frozen encoder as a run: only a readout is added."""
    input:
        encoder=TRAINING.encoder,
        code=code_with("pool_encoder", TRAINING.modules),
    output:
        "<results>/runs/{run}/seed{seed}/model/modules.json",
        record="<results>/runs/{run}/seed{seed}/model/record.json",
    log:
        "<logs>/pool_encoder/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/pool_encoder/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(STUDY.frozen),
    resources:
        **REQUESTS.of("pool_encoder"),
    params:
        **call("pool_encoder", TRAINING.frozen_settings, TRAINING.modules),
    shell:
        command("pool_encoder")


rule join_encoders:
    """A run made from finished runs: the sum of their vectors, or one of them with another readout."""
    input:
        encoder=TRAINING.encoder,
        code=code_with("join_encoders", TRAINING.modules),
    output:
        "<results>/runs/{run}/seed{seed}/model/modules.json",
        record="<results>/runs/{run}/seed{seed}/model/record.json",
    log:
        "<logs>/join_encoders/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/join_encoders/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(STUDY.joined),
    resources:
        **REQUESTS.of("join_encoders"),
    params:
        **call("join_encoders", TRAINING.frozen_settings, TRAINING.modules),
    shell:
        command("join_encoders")


rule encode_teacher:
    """A finished run's vectors of a corpus, for its students; one job per teacher, corpus and seed."""
    input:
        model=TRAINING.teacher_model,
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=code_with("encode_teacher", TRAINING.teacher_modules),
    output:
        vectors="<results>/teachers/{teacher}/{corpus}/seed{seed}.parquet",
    log:
        "<logs>/encode_teacher/{teacher}/{corpus}/seed{seed}.log",
    benchmark:
        "<benchmarks>/encode_teacher/{teacher}/{corpus}/seed{seed}.tsv"
    wildcard_constraints:
        teacher=one_of(STUDY.encoders("runs")),
    resources:
        **REQUESTS.of("encode_teacher"),
        gpu=1,
    params:
        **call("encode_teacher", config_slice(config, teacher="teacher"), TRAINING.teacher_modules),
    shell:
        command("encode_teacher")


rule train_encoder:
    """Fine-tune one encoder; one job per run and seed."""
    input:
        encoder=TRAINING.encoder,
        corpus=TRAINING.corpus,
        dev=TRAINING.development,
        exemplars=TRAINING.exemplars,
        words=TRAINING.words,
        teacher=TRAINING.teacher,
        code=code_with("train_encoder", TRAINING.modules),
    output:
        "<results>/runs/{run}/seed{seed}/model/modules.json",
        record="<results>/runs/{run}/seed{seed}/model/record.json",
        history="<results>/runs/{run}/seed{seed}/history.parquet",
        metrics="<results>/runs/{run}/seed{seed}/metrics.parquet",
        speed="<benchmarks>/train_encoder/{run}/seed{seed}.speed.parquet",
    log:
        "<logs>/train_encoder/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/train_encoder/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(STUDY.trained),
    threads: TRAINING.of_training("cpu_threads")
    resources:
        **REQUESTS.of("train_encoder"),
        gpu=TRAINING.of_training("gpus"),
        nodes=1,  # a site may spread a training over several: docs/cluster_details.md
        checkpoint_minutes=TRAINING.of_training("checkpoint_minutes", str),
        chunk=TRAINING.of_training("chunk", as_json),
    params:
        **call("train_encoder", TRAINING.settings, TRAINING.modules),
    shell:
        command("train_encoder")
