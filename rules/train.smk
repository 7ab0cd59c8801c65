"""From encoders and corpora to runs.

Unfinished trainings keep their checkpoints in `<folder>.checkpoints` next to the model, which is no rule's output: a
job that was stopped continues from there, and ends with the same bytes.
"""

TRAINED = STUDY.trained  # runs that are trained on a corpus; all others use finished encoders
FROZEN = [name for name, run in STUDY.runs.items() if not run.corpus and not run.members]  # of one encoder
JOINED = [name for name, run in STUDY.runs.items() if not run.corpus and run.members]  # of finished runs
# run(w).start(w.seed) returns the records of the model folders from which a run starts.


continue_mlm = JobSpec(
    "jobs.continue_mlm.continue_mlm",
    settings=settings_of(encoder, "continue_mlm", "adapt"),
    portable=True,
)


rule continue_mlm:
    """Adapt one encoder to a corpus by continued masked-language-model training."""
    input:
        base=path_if_set("<results>/encoders/{base}/record.json", setting("encoders.{encoder}.adapt")),
        corpus=path_if_set("<results>/corpora/{corpus}/train.parquet", setting("encoders.{encoder}.adapt")),
        code=continue_mlm.code,
    output:
        "<results>/encoders/{encoder}/model.safetensors",
        record="<results>/encoders/{encoder}/record.json",
        history="<results>/encoders/{encoder}.history.parquet",
    log:
        "<logs>/continue_mlm/{encoder}.log",
    benchmark:
        "<benchmarks>/continue_mlm/{encoder}.tsv"
    wildcard_constraints:
        encoder=name_pattern(blocks_with(SETTINGS.encoders, "adapt")),
    threads: lambda w: encoder(w).training.cpu_threads
    resources:
        **job_resources(gigabytes=16, hours=4, encoders=lambda w: [w.encoder]),
        gpu=1,
        checkpoint_minutes=lambda w: str(encoder(w).training.checkpoint_minutes),
    params:
        **continue_mlm.params,
    message:
        "Adapt encoder {wildcards.encoder} by masked language modelling; log: {log}"
    shell:
        continue_mlm.shell


build_frozen = JobSpec(
    "methods.frozen.build_frozen",
    settings=settings_of(run, "method", "members", "labels"),
    imports=method_modules,
)


rule build_frozen:
    """Make a run without training: add a readout to its encoder, and perhaps a linear map that is fitted on a text."""
    input:
        encoder=lambda w: run(w).start(w.seed),
        text=path_if_set("<results>/corpora/{fitted_on}/train.parquet", run),
        code=build_frozen.code,
    output:
        "<results>/runs/{run}/seed{seed}/model/modules.json",
        record="<results>/runs/{run}/seed{seed}/model/record.json",
    log:
        "<logs>/build_frozen/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/build_frozen/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=name_pattern(FROZEN),
    resources:
        **job_resources(gigabytes=8, minutes=15, encoders=run_encoder),
        gpu=lambda w: int(run(w).fitted_on is not None),
    params:
        **build_frozen.params,
    message:
        "Build {wildcards.run} (seed {wildcards.seed}) from its frozen encoder; log: {log}"
    shell:
        build_frozen.shell


build_ensemble = JobSpec(
    "jobs.build_ensemble.build_ensemble",
    settings=settings_of(run, "method", "members", "labels"),
    imports=method_modules,
)


rule build_ensemble:
    """Make a run from finished runs: the sum of their vectors, or one of them with another readout."""
    input:
        encoder=lambda w: run(w).start(w.seed),
        code=build_ensemble.code,
    output:
        "<results>/runs/{run}/seed{seed}/model/modules.json",
        record="<results>/runs/{run}/seed{seed}/model/record.json",
    log:
        "<logs>/build_ensemble/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/build_ensemble/{run}/seed{seed}.tsv"
    wildcard_constraints:
        run=name_pattern(JOINED),
    resources:
        **job_resources(gigabytes=8, minutes=15, encoders=run_encoder),
    params:
        **build_ensemble.params,
    message:
        "Join the members of {wildcards.run} (seed {wildcards.seed}); log: {log}"
    shell:
        build_ensemble.shell


encode_teacher = JobSpec(
    "jobs.encode_teacher.encode_teacher",
    settings=config_settings(teacher="teacher"),
    imports=lambda w: teacher(w).modules,
)


rule encode_teacher:
    """Encode a corpus with a finished run, for its students; one job per teacher, corpus and seed."""
    input:
        model=lambda w: teacher(w).models(w.seed)[0],
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=encode_teacher.code,
    output:
        vectors="<results>/teachers/{teacher}/{corpus}/seed{seed}.parquet",
    log:
        "<logs>/encode_teacher/{teacher}/{corpus}/seed{seed}.log",
    benchmark:
        "<benchmarks>/encode_teacher/{teacher}/{corpus}/seed{seed}.tsv"
    resources:
        **job_resources(gigabytes=16, hours=4, encoders=lambda w: [w.teacher]),
        gpu=1,
    params:
        **encode_teacher.params,
    message:
        "Encode {wildcards.corpus} with teacher {wildcards.teacher} (seed {wildcards.seed}); log: {log}"
    shell:
        encode_teacher.shell


train_encoder = JobSpec(
    "jobs.train_encoder.train_encoder",
    settings=settings_of(run, "method", "development", "members", "labels", training="result_training"),
    imports=method_modules,
    portable=True,
)


rule train_encoder:
    """Fine-tune one encoder; one job per run and seed."""
    input:
        encoder=lambda w: run(w).start(w.seed),
        corpus=path_if_set("<results>/corpora/{corpus}/train.parquet", run),
        dev=lambda w: run(w).dev,
        exemplars=path_if_set("<results>/exemplars/{pool}.parquet", run),
        words=path_if_set("<results>/corpora/{words_of}/words.parquet", run),
        teacher=path_if_set("<results>/teachers/{teacher}/{corpus}/seed{seed}.parquet", run),
        code=train_encoder.code,
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
        run=name_pattern(TRAINED),
    threads: lambda w: run(w).training.cpu_threads
    resources:
        **job_resources(gigabytes=16, hours=8, encoders=run_encoder),
        gpu=lambda w: run(w).training.gpus,
        checkpoint_minutes=lambda w: str(run(w).training.checkpoint_minutes),
        chunk=lambda w: as_json(run(w).training.chunk),
    params:
        **train_encoder.params,
    message:
        "Train {wildcards.run} (seed {wildcards.seed}); log: {log}"
    shell:
        train_encoder.shell
