"""Speed claims: each file runs a peer and us on the same work in one go, checks the answers, and prints ratios."""
