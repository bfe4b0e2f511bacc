"""Learners of streams with an l1 penalty, one row at a time."""
