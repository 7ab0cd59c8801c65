"""Types of numpy arrays."""

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
