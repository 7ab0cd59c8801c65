"""From encoders and corpora to runs.

Unfinished trainings keep their checkpoints in `<folder>.checkpoints` next to the model, which is not an output of any
rule: a job that is stopped and run again continues from there, and ends with the same bytes.
"""


rule continue_mlm:
    """Adapt one encoder to a corpus by continued masked-language-model training."""
    input:
        base=filled("<results>/encoders/{base}/record.json", block("encoders.{encoder}.adapt")),
        corpus=filled("<results>/corpora/{corpus}/train.parquet", block("encoders.{encoder}.adapt")),
        code=code("jobs.continue_mlm"),
    output:
        "<results>/encoders/{encoder}/model.safetensors",
        record="<results>/encoders/{encoder}/record.json",
        history="<results>/encoders/{encoder}.history.parquet",
    log:
        "<logs>/continue_mlm/{encoder}.log",
    benchmark:
        "<benchmarks>/continue_mlm/{encoder}.tsv"
    wildcard_constraints:
        encoder=one_of(having(SETTINGS.encoders, "adapt")),
    threads: lambda w: encoder(w).training.cpu_threads
    resources:
        **ask(16, hours=4, loads=lambda w: [w.encoder]),
        gpu=1,
        checkpoint_minutes=lambda w: str(encoder(w).training.checkpoint_minutes),
    params:
        **call("jobs.continue_mlm", parts(encoder, "continue_mlm", "adapt")),
    shell:
        command("continue_mlm")


rule pool_encoder:
    """A frozen encoder as a run: only a readout is added."""
    input:
        encoder=lambda w: run(w).start(w.seed),
        code=code("methods.frozen", modules),
    output:
        "<results>/runs/{run}/seed{seed}/model/modules.json",
        record="<results>/runs/{run}/seed{seed}/model/record.json",
    log:
        "<logs>/pool_encoder/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/pool_encoder/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(name for name, one in STUDY.runs.items() if not one.corpus and not one.members),
    resources:
        **ask(8, minutes=15, loads=of_run),
    params:
        **call("methods.frozen", parts(run, "method", "members", "labels"), modules),
    shell:
        command("pool_encoder")


rule join_encoders:
    """A run made from finished runs: the sum of their vectors, or one of them with another readout."""
    input:
        encoder=lambda w: run(w).start(w.seed),
        code=code("jobs.join_encoders", modules),
    output:
        "<results>/runs/{run}/seed{seed}/model/modules.json",
        record="<results>/runs/{run}/seed{seed}/model/record.json",
    log:
        "<logs>/join_encoders/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/join_encoders/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(name for name, one in STUDY.runs.items() if not one.corpus and one.members),
    resources:
        **ask(8, minutes=15, loads=of_run),
    params:
        **call("jobs.join_encoders", parts(run, "method", "members", "labels"), modules),
    shell:
        command("join_encoders")


rule encode_teacher:
    """A finished run's vectors of a corpus, for its students; one job per teacher, corpus and seed."""
    input:
        model=lambda w: teacher(w).models(w.seed)[0],
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=code("jobs.encode_teacher", lambda w: teacher(w).modules),
    output:
        vectors="<results>/teachers/{teacher}/{corpus}/seed{seed}.parquet",
    log:
        "<logs>/encode_teacher/{teacher}/{corpus}/seed{seed}.log",
    benchmark:
        "<benchmarks>/encode_teacher/{teacher}/{corpus}/seed{seed}.tsv"
    resources:
        **ask(16, hours=4, loads=lambda w: [w.teacher]),
        gpu=1,
    params:
        **call("jobs.encode_teacher", settings(teacher="teacher"), lambda w: teacher(w).modules),
    shell:
        command("encode_teacher")


rule train_encoder:
    """Fine-tune one encoder; one job per run and seed."""
    input:
        encoder=lambda w: run(w).start(w.seed),
        corpus=filled("<results>/corpora/{corpus}/train.parquet", run),
        dev=lambda w: run(w).dev,
        exemplars=filled("<results>/exemplars/{pool}.parquet", run),
        words=filled("<results>/corpora/{words_of}/words.parquet", run),
        teacher=filled("<results>/teachers/{teacher}/{corpus}/seed{seed}.parquet", run),
        code=code("jobs.train_encoder", modules),
    output:
        "<results>/runs/{run}/seed{seed}/model/modules.json",
        record="<results>/runs/{run}/seed{seed}/model/record.json",
        history="<results>/runs/{run}/seed{seed}/history.parquet",
        metrics="<results>/runs/{run}/seed{seed}/metrics.parquet",
    log:
        "<logs>/train_encoder/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/train_encoder/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=one_of(STUDY.trained),
    threads: lambda w: run(w).training.cpu_threads
    resources:
        **ask(16, hours=8, loads=of_run),
        gpu=lambda w: run(w).training.gpus,
        checkpoint_minutes=lambda w: str(run(w).training.checkpoint_minutes),
        chunk=lambda w: as_json(run(w).training.chunk),
    params:
        **call(
            "jobs.train_encoder",
            parts(run, "method", "development", "members", "labels", training="decides"),
            modules,
        ),
    shell:
        command("train_encoder")
