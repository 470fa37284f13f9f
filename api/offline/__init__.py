"""Reading recorded texts, without a model and without a server."""
