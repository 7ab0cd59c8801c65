"""Logistic regression solved for many row subsets and penalties at once.

    min_W  sum_n m_n CE(t_n, softmax(W x_n + b)) + ||W||^2 / 2C

One problem is a subset m of the rows and a value of C; the targets t are class probabilities, so labels may be soft.
This is scikit-learn's LogisticRegression(C): the intercept b is not penalised, and two classes have one row of
weights. Cross-validation needs hundreds of such fits on one matrix of features. Here they are solved together, so that
a step costs two matrix products for all of them, and each starts from the solution on all rows for its C. The minimum
is unique, so up to the tolerance the result depends neither on the start nor on the other problems.

Method: L-BFGS (Nocedal and Wright 2006, algorithm 7.4), started with an inverse Hessian that is averaged over all
problems and classes. On MR with all-MiniLM-L6-v2 (10,662 x 384; 110 subsets, 6 values of C), it takes about seven
steps per value of C, 4 s on one core; on five classes of SST-5, or three of SICK-E, up to thirty. Where classes are of
very different sizes, as in TREC, the average is far from each, and hundreds of steps may not be enough. Problems that
are unsolved after ``_MAX_STEPS`` go to scikit-learn's Newton method, one at a time: some twelve steps whatever C and
the classes are, a second or two for TREC's 5,452 rows.

Shape suffixes: N rows, D features, F features and a constant, P problems, K logits (1 for two classes),
C classes.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import Tensor

Floats = NDArray[np.float64]
Features = NDArray[np.float32]

_MEMORY = 10
_MAX_STEPS = 60
_MAX_HALVINGS = 40
_TOLERANCE = 1e-12
"""Expected decrease of the loss, relative to it (or to 1 if it is smaller), at which a problem counts as solved."""
_NEWTON_TOLERANCE = 1e-7
"""Largest component of the gradient of the mean loss at which scikit-learn stops; predictions no longer change."""
_NEVER = -1e9
"""Logit of a class without a row."""
_CELLS = 1 << 22
"""Logits in memory at once, problems x classes x rows: 32 MB per array."""


def with_constant(features_ND: Features) -> Tensor:
    """Features in float64 with a last column of ones, shape (N, F)."""
    features = torch.from_numpy(np.ascontiguousarray(features_ND)).double()
    return torch.cat([features, torch.ones(len(features), 1, dtype=torch.float64)], dim=1)


def solve(
    features_ND: Features, targets_NC: Floats, rows_PN: NDArray[np.bool_], strengths: list[float]
) -> list[Tensor]:
    """Fit every subset of rows with every inverse penalty C.

    Args:
        features_ND: Features without a constant.
        targets_NC: Class probabilities; one-hot rows for hard labels.
        rows_PN: The rows that each problem trains on.
        strengths: Values of C, ascending.

    Returns:
        For each value of C, the weights of all problems, shape (P, C, F), with the constant's weight last.
    """
    assert np.isfinite(features_ND).all()
    targets_KN = torch.from_numpy(targets_NC.T.copy())
    rows = _Rows(with_constant(features_ND), targets_KN[1:] if len(targets_KN) == 2 else targets_KN)
    masks_PN = torch.from_numpy(rows_PN).double()
    pooled_1N = masks_PN.amax(dim=0, keepdim=True)
    chunk = max(1, _CELLS // rows.targets_KN.numel())
    pooled = torch.zeros(1, len(rows.targets_KN), rows.features_NF.shape[1], dtype=torch.float64)
    solutions = []
    for strength in strengths:
        pooled, solved = _minimise(rows, pooled_1N, strength, pooled, _MAX_STEPS)
        parts = [(pooled, solved)]
        if len(masks_PN) > 1:
            steps = _MAX_STEPS if solved.all() else 0  # subsets of rows are no easier than all of them
            starts = range(0, len(masks_PN), chunk)
            parts = [_minimise(rows, masks_PN[at : at + chunk], strength, pooled, steps) for at in starts]
        weights_PKF, solved_P = (torch.cat(part) for part in zip(*parts, strict=True))
        for problem in np.flatnonzero(~solved_P.numpy()):
            weights_PKF[problem] = _by_newton(features_ND, targets_NC, rows_PN[problem], strength)
        two_classes = weights_PKF.shape[1] == 1
        solutions.append(torch.cat([0 * weights_PKF, weights_PKF], dim=1) if two_classes else weights_PKF)
    return solutions


class _Rows(NamedTuple):
    """The rows that all problems have in common, with loss, gradient and curvature over them."""

    features_NF: Tensor
    targets_KN: Tensor

    def logits(self, weights_PKF: Tensor) -> Tensor:
        """Shape (P, K, N)."""
        return weights_PKF @ self.features_NF.T

    def loss(self, logits_PKN: Tensor, masks_PN: Tensor) -> Tensor:
        """Cross-entropy summed over each problem's rows, shape (P,)."""
        if logits_PKN.shape[1] == 1:
            normaliser_PN = torch.nn.functional.softplus(logits_PKN[:, 0])
        else:
            normaliser_PN = logits_PKN.logsumexp(dim=1)
        reached_PN = torch.einsum("pkn,kn->pn", logits_PKN, self.targets_KN)
        # The difference is taken row by row: sums of large logits would leave it no digits for the line search.
        return torch.einsum("pn,pn->p", normaliser_PN - reached_PN, masks_PN)

    def gradient(self, logits_PKN: Tensor, masks_PN: Tensor) -> Tensor:
        """Gradient of the loss, shape (P, K, F)."""
        residual_PKN = (_probabilities(logits_PKN) - self.targets_KN) * masks_PN[:, None]
        return residual_PKN @ self.features_NF

    def curvature(self, logits_PKN: Tensor, masks_PN: Tensor) -> Tensor:
        """Diagonal block of the loss's Hessian, averaged over problems and classes, shape (F, F)."""
        chance_PKN = _probabilities(logits_PKN)
        spread_N = ((chance_PKN * (1 - chance_PKN)).mean(dim=1) * masks_PN).mean(dim=0)
        return self.features_NF.T @ (self.features_NF * spread_N[:, None])


def _probabilities(logits_PKN: Tensor) -> Tensor:
    return logits_PKN.sigmoid() if logits_PKN.shape[1] == 1 else logits_PKN.softmax(dim=1)


def _minimise(
    rows: _Rows, masks_PN: Tensor, strength: float, start_1KF: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """The problems of one value of C after so many steps, shape (P, K, F), and which are solved, shape (P,)."""
    penalty_F = torch.full((start_1KF.shape[-1],), 1 / strength, dtype=torch.float64)
    penalty_F[-1] = 0  # the constant's

    def loss_at(logits_PKN: Tensor, weights_PKF: Tensor) -> Tensor:
        return rows.loss(logits_PKN, masks_PN) + (penalty_F * weights_PKF.square()).sum(dim=(1, 2)) / 2

    weights = start_1KF.expand(len(masks_PN), -1, -1).contiguous()
    logits = rows.logits(weights)
    loss = loss_at(logits, weights)
    gradient = rows.gradient(logits, masks_PN) + penalty_F * weights
    factor_FF = _factor(rows.curvature(logits, masks_PN), penalty_F)
    memory: list[_Pair] = []
    solved = torch.zeros_like(loss, dtype=torch.bool)
    for _ in range(steps):
        direction = -_inverse_hessian_product(gradient, memory, factor_FF)
        slope = _dot(gradient, direction)
        solved = -slope <= _TOLERANCE * loss.clamp(min=1)
        if solved.all():
            break
        direction = torch.where(solved[:, None, None], 0.0, direction)
        along = rows.logits(direction)
        step = torch.ones_like(loss)
        for _ in range(_MAX_HALVINGS):
            trial_weights = torch.addcmul(weights, step[:, None, None], direction)
            trial_logits = torch.addcmul(logits, step[:, None, None], along)
            trial_loss = loss_at(trial_logits, trial_weights)
            rounding = 1e-13 * loss
            lower = trial_loss <= loss + 1e-4 * step * slope + rounding
            if lower.all():
                break
            step = torch.where(lower, step, step / 2)
        before = gradient
        gradient = rows.gradient(trial_logits, masks_PN) + penalty_F * trial_weights
        memory = [*memory[1 - _MEMORY :], _Pair.of(trial_weights - weights, gradient - before)]
        weights, logits, loss = trial_weights, trial_logits, trial_loss
    return weights, solved


def _by_newton(
    features_ND: Features, targets_NC: Floats, rows_N: NDArray[np.bool_], strength: float
) -> Tensor:
    """One problem by scikit-learn, shape (K, F); a class without a row in it is never predicted."""
    kept_NC = targets_NC * rows_N[:, None]
    rows, classes = np.nonzero(kept_NC)  # a soft label is one row for each of its classes
    present = np.unique(classes)
    weights_CF = np.zeros((targets_NC.shape[1], features_ND.shape[1] + 1))
    weights_CF[:, -1] = np.where(np.isin(np.arange(len(weights_CF)), present), 0, _NEVER)
    if len(present) > 1:
        model = LogisticRegression(C=strength, solver="newton-cg", tol=_NEWTON_TOLERANCE, max_iter=1000)
        model.fit(features_ND[rows].astype(np.float64), classes, sample_weight=targets_NC[rows, classes])
        fitted = present if len(present) > 2 else present[1:]  # two have one row of weights
        weights_CF[fitted] = np.concatenate([model.coef_, model.intercept_[:, None]], axis=1)
    weights_KF = weights_CF[1:] - weights_CF[:1] if len(weights_CF) == 2 else weights_CF
    return torch.from_numpy(weights_KF)


def _factor(hessian_FF: Tensor, penalty_F: Tensor) -> Tensor:
    """Cholesky factor of the penalised Hessian; a small value is added where there is no penalty."""
    diagonal_F = penalty_F + 1e-10 * hessian_FF.diagonal().mean()
    factor: Tensor = torch.linalg.cholesky(hessian_FF + diagonal_F.diag())
    return factor


class _Pair(NamedTuple):
    """A step of L-BFGS, the change of the gradient over it, and the inverse of their product."""

    step: Tensor
    change: Tensor
    inverse: Tensor

    @classmethod
    def of(cls, step: Tensor, change: Tensor) -> "_Pair":
        product = _dot(step, change)
        return cls(step, change, torch.where(product > 0, 1 / product, 0.0))  # 0 where nothing moved


def _inverse_hessian_product(gradient_PKF: Tensor, memory: list[_Pair], factor_FF: Tensor) -> Tensor:
    """Two-loop recursion, started with the common inverse Hessian, shape (P, K, F)."""
    product, shares = gradient_PKF, []
    for pair in reversed(memory):
        share = pair.inverse * _dot(pair.step, product)
        product = product - share[:, None, None] * pair.change
        shares.append(share)
    flat = product.reshape(-1, product.shape[-1]).T
    product = torch.cholesky_solve(flat, factor_FF).T.reshape(product.shape)
    for pair, share in zip(memory, reversed(shares), strict=True):
        correction = share - pair.inverse * _dot(pair.change, product)
        product = product + correction[:, None, None] * pair.step
    return product


def _dot(left_PKF: Tensor, right_PKF: Tensor) -> Tensor:
    return (left_PKF * right_PKF).sum(dim=(1, 2))
