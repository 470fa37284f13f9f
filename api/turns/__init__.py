"""One turn of a model, whatever API asked for it: prompt and grammar in, deltas out."""
