"""Short-text clustering: k-means on the embeddings, compared with the classes.

k is the number of classes. k-means runs once per seed 0, 1, ..., each time keeping the best of ``n_init`` starts;
scores are mean and standard deviation over the seeds. ``accuracy`` is the fraction of texts whose cluster is assigned
to their class by the best one-to-one assignment (Hungarian algorithm). ``nmi`` is normalised by the arithmetic mean of
the two entropies, which makes it equal to ``v_measure`` with beta 1; both are reported because papers use either name.
The extraction study uses seeds 0 to 9, scikit-learn's k-means with ten starts, its default at the time, and texts
truncated to 64 tokens.

k-means is scikit-learn's, as in that study. A comparison with faiss (random initialisation, 25 iterations) on MiniLM's
vectors (384 wide), with ten starts per seed, three seeds, on one core:

    task            classes  sum of squares    accuracy      seconds per seed
    agnews                4    6887 |  6887    78.1 | 78.3     0.5 |  0.4
    searchsnippets        8   10040 | 10034    74.3 | 74.6     1.6 |  0.8
    biomedical           20   14728 | 14725    50.2 | 51.1     6.6 |  2.8
    googlets            152    4824 |  4914    71.7 | 71.8    12.4 |  3.6

They agree within the spread over seeds, but with many classes faiss stops at a worse optimum than a single start of
scikit-learn (4848, in 1.3 s), so faiss is not faster for the same quality.

Shape suffixes: N texts, D width, C clusters or classes.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score, v_measure_score
from threadpoolctl import threadpool_limits

from workflow_scripts.arrays import Vectors
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.base import Score, Task
from workflow_scripts.settings.suites import Clustering

Config = Clustering

Labels = NDArray[np.intp]


def load(task: str, table: pa.Table, config: Config) -> Task:
    """Return a task of texts and their classes, scored by mean and sd of each metric over the seeds.

    ``n`` counts texts.

    Raises:
        DataError: if there is only one class, or one class per text: every clustering would be perfect.
    """
    table = drawn(table, config.max_texts)
    classes, classes_N = np.unique(table["label"].to_pylist(), return_inverse=True)
    if len(classes) in (1, len(table)):
        raise DataError(f"{len(table)} texts of {len(classes)} classes. Check the column of labels.")

    def score(vectors_ND: Vectors) -> list[Score]:
        clusterings = [cluster(vectors_ND, len(classes), seed, config.n_init) for seed in range(config.seeds)]
        scores = summaries(task, [agreement(classes_N, clusters_N) for clusters_N in clusterings], len(table))
        fewest = min(len(np.unique(clusters_N)) for clusters_N in clusterings)
        if fewest == len(classes):
            return scores
        note = f"{fewest} clusters for {len(classes)} classes: the texts have no more different vectors"
        return [score._replace(note=note) for score in scores]

    return Task([table["text1"].to_pylist()], score)


def drawn(table: pa.Table, max_texts: int | None) -> pa.Table:
    """Return a fixed sample of ``max_texts`` rows in their original order; all rows of a smaller table."""
    if max_texts is None or len(table) <= max_texts:
        return table
    return table.take(np.sort(np.random.default_rng(0).permutation(len(table))[:max_texts]))


def cluster(vectors_ND: Vectors, count: int, seed: int, n_init: int) -> Labels:
    """Return the number of each text's cluster, shape (N,), by k-means with ``count`` clusters."""
    # One thread: several threads add centroids in the order in which they finish, and the last bit can move a text.
    with threadpool_limits(limits=1):
        kmeans: Any = KMeans(count, n_init=n_init, random_state=seed).fit(vectors_ND)
    return np.asarray(kmeans.labels_, dtype=np.intp)


def agreement(classes_N: Labels, clusters_N: Labels) -> dict[str, float]:
    """Return the metrics of one clustering, each from 0 to 1."""
    return {
        "accuracy": hungarian_accuracy(classes_N, clusters_N),
        "nmi": float(normalized_mutual_info_score(classes_N, clusters_N)),
        "v_measure": float(v_measure_score(classes_N, clusters_N)),
    }


def hungarian_accuracy(classes_N: Labels, clusters_N: Labels) -> float:
    """Return the fraction of texts in their class, for the one-to-one assignment of clusters that maximises it.

    Args:
        classes_N: Numbers of the true classes, from 0.
        clusters_N: Numbers of the clusters, from 0; there may be more or fewer clusters than classes.
    """
    together_CC = np.zeros((classes_N.max() + 1, clusters_N.max() + 1), dtype=np.int64)
    np.add.at(together_CC, (classes_N, clusters_N), 1)
    return float(together_CC[linear_sum_assignment(together_CC, maximize=True)].sum() / len(classes_N))


def summaries(task: str, seeds: list[dict[str, float]], texts: int) -> list[Score]:
    """Return mean and standard deviation of each metric over the seeds; ``texts`` is the number of clustered texts."""
    scores = []
    for metric in seeds[0]:
        values = [seed[metric] for seed in seeds]
        scores.append(Score(task, "mean", metric, float(np.mean(values)), texts))
        scores.append(Score(task, "sd", metric, float(np.std(values, ddof=1)), texts))
    return scores
