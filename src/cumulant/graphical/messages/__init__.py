"""Messages and mean field: belief propagation, max-product, double loops, region graphs, lower bounds by blocks."""
