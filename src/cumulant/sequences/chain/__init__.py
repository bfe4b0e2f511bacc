"""Linear chains: exact inference, the regularised likelihood and its dual."""
