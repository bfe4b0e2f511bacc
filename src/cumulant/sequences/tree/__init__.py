"""Graphs by junction trees: exact inference, the regularised likelihood and its dual."""
