"""Conditional mean field: partitions into finer and finer blocks, the approximation fitted to each, and the particles
that go from one to the next.
"""
