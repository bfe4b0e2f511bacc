"""Sums of products of tables by einsum."""

import numpy as np


def contraction(sizes, tables, scopes, wanted):
    """``sum prod tables`` over the variables that are not `wanted`."""
    arguments = [np.ones(()), []]
    for table, scope in zip(tables, scopes, strict=True):
        arguments += [np.asarray(table), list(scope)]
    missing = [v for v in wanted if not any(v in scope for scope in scopes)]
    for v in missing:
        arguments += [np.ones(sizes[v]), [v]]
    return np.einsum(*arguments, list(wanted), optimize=False)
