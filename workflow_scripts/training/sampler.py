"""Rows of each training step: a function of seed and step, without a state to save."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from workflow_scripts.errors import ConfigError, TrainingError
from workflow_scripts.settings.training import LastBatch, batches
from workflow_scripts.training import ranks


class Sampler:
    """Shuffled batches of row numbers, in a new order in every epoch."""

    def __init__(self, rows: int, batch_size: int, seed: int, last_batch: LastBatch = "drop") -> None:
        if rows < batch_size:
            raise TrainingError(
                f"training: {rows} rows, fewer than a batch of {batch_size}. Set batch_size to {rows} or "
                "less."
            )
        self.seed = seed
        self._rows = rows
        self._batch_size = batch_size
        self._per_epoch = batches(rows, batch_size, last_batch)
        # This rank's part of a step's rows: every world-th, from the rank's number, as dropout assumes.
        self._share = slice(ranks.rank(), None, ranks.world())
        left = rows % batch_size
        if self._per_epoch > rows // batch_size and left % ranks.world():
            raise ConfigError(
                f"training.last_batch: keep leaves {left} of {rows} rows for {ranks.world()} processes. Set it to drop."
            )
        self._order = lru_cache(maxsize=1)(self._shuffle)

    def _shuffle(self, epoch: int) -> NDArray[np.int64]:
        return np.random.default_rng([self.seed, epoch]).permutation(self._rows)

    def rows_of(self, step: int) -> NDArray[np.int64]:
        """Return this rank's rows of ``step`` (from 1); all rows of the step for a single rank; never only one row."""
        epoch, batch = divmod(step - 1, self._per_epoch)
        start = batch * self._batch_size
        return self._order(epoch)[start : start + self._batch_size][self._share]
