"""What runs a model: transformers, exllamav3, or recorded text."""
