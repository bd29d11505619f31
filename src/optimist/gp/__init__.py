"""Gaussian process regression: the paper's Section 3.2, after Rasmussen & Williams (RW).

Targets y = f(x) + noise, with prior covariance

    k(x, x') = v0 exp(-1/2 (x - x')^T Omega (x - x')) + b

and Omega one of three metrics (`covariance`). Hyperparameters maximise the marginal likelihood times weak
priors (`evidence`, RW Eq. 5.8 and 5.9). A `basis` of m training inputs is chosen by incomplete Cholesky
decomposition; on it the `posterior` is the subset of regressors with projected-process variance (RW
Sec. 8.3), or the exact one:

    mean(x) = k_m(x)^T w,      variance(x) = k(x, x) - |k_m(x)^T H|^2.

On a tensor grid the covariance is a product over axes, and `on_grid` evaluates both for all nodes at a small
part of the cost.
"""
