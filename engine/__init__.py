"""Grammar-driven decoding: masks out, tokens in, parse events out. No model library, no HTTP.

What programs need is importable from here: `__init__.pyi` lists it; names are loaded when they are used.
Backends, which run models, are imported by their own paths: `larksong.engine.backends.transformers` and its
neighbours.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
