"""The exllamav3 backend: EXL3 and fp16 models on NVIDIA GPUs.

`backend` serves many requests at once, `filter` is what it puts into exllamav3, `settings` says how a model
is loaded. Only `settings` and `version` can be imported where exllamav3 is not installed.
"""
