"""The estimator `GLM`: inputs, fits, predictions, standard errors, penalty paths, streams of batches, files."""
