"""How solutions behave: gradient flows, implicit bias, separability, ridge and Lasso paths, principal axes."""
