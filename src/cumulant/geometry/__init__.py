"""Bregman geometry: entropies, projections, proximal maps, duality, and the coordinates of symmetric matrices."""
