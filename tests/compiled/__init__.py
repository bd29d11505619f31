"""The kernels against their naive twins."""
