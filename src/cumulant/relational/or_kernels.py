"""The messages of a deterministic OR, in time linear in the number of its causes, without cancellation.

Causes send ``(1 - t_k, t_k)``; what matters of them is ``log P_F = sum log(1 - t_k)``. A chain of small tables
(`graphical.CausalIndependence`) gives the same messages for any noise and any operation; here all causes of an OR
change a few times in a sweep, and a sum of logarithms that is kept serves every one of them at once.
"""

import numpy as np

from cumulant.kernels import kernel


@kernel(called_by="both")
def or_to_aggregate(log_none):
    """``(P_F, 1 - P_F)``: that no cause is true, and that some cause is."""
    return np.exp(log_none), -np.expm1(log_none)


@kernel(called_by="both")
def or_to_cause(false, true, log_none_of_others):
    """What an OR says of a cause that is false, and true, where `false` and `true` is what is said of the OR."""
    none, some = or_to_aggregate(log_none_of_others)
    return false * none + true * some, true
