"""What the documentation adds to Sphinx: guides that run while they are built, formulas without a network."""
