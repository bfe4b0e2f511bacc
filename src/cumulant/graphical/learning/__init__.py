"""Learning discrete models: maximum likelihood by exact or sampled gradients with plans and certificates, rivals."""
