"""The estimator `GLM`: objective, dual, certificates, data, standard errors, penalty paths, streams of batches."""
