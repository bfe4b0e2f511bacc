"""The objective of a generalised linear model: features, losses, the dual, the duality gap and certificates."""
