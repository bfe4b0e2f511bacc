"""Certificates that need only a point and the data: optimality of composite objectives, self-concordance."""
