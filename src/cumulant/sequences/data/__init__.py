"""Labelled sequences and graphs as arrays, and the files they are read from."""
