"""The smallest stand-in that lets the real package exllamav3 run on a CPU.

The package is the pinned one from the registry; only what needs CUDA is replaced:

| missing | in its place |
| --- | --- |
| the compiled extension | `extension.py`: host functions and sampling kernels in plain Python, numpy and torch |
| triton, where it isn't installed | an empty module whose decorators give functions back |
| pinned memory and `torch.cuda.synchronize` | ordinary memory, nothing; in the two modules that ask for them |
| a model | `model.py`: one attention module that reads its prefix out of the real paged cache |

Everything else is exllamav3's own: Config, Tokenizer, Cache, PageTable, Generator, AsyncGenerator, Job,
filters, samplers, draft verification, requeues and rewinds. Written from what the package does; nothing of it
is copied here. Not covered: its kernels, its attention and quantised layers, tensor parallelism, timing.
"""

from tests.exllamav3.stand_in.install import install

__all__ = ["install"]
