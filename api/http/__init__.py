"""What all routes share: bodies, keys, limits, event streams, logs and figures."""
