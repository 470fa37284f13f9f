"""Reading a GGUF file: its metadata and the places of its tensors.

Layout (github.com/ggml-org/ggml, docs/gguf.md), little endian: magic "GGUF", version u32, tensor count u64,
metadata count u64; then the metadata (key, type, value), the tensor table (name, dimensions fastest first,
type, offset), and from the next multiple of `general.alignment` on the tensors' data.

The `gguf` package reads the same, but keeps every array element as an object of its own: 5 s for a vocabulary
of 49,152 tokens, against 0.1 s here.
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larksong.engine.backends.errors import NotAModel

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """A tensor as it lies in the file."""

    shape: tuple[int, ...]
    """Dimensions, slowest first (as in numpy and torch)."""
    kind: int
    """GGML type number (0 is float32, 1 float16, the others mostly quantized blocks)."""
    offset: int
    """First byte, from the start of the file."""


class GgufFile:
    """A GGUF file, mapped into memory.

    Raises NotAModel for a file of another kind and for one that is cut off.
    """

    metadata: dict[str, Any]
    """Key to value: int, float, bool, str, or a list of these."""
    tensors: dict[str, GgufTensor]
    """Name to tensor."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise NotAModel(path, "it does not begin with the letters GGUF")
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self._read_header()
        except (struct.error, UnicodeDecodeError, KeyError) as error:
            raise NotAModel(path, f"its GGUF header is damaged or cut off ({error})") from error

    def tensor_bytes(self, name: str, count: int) -> NDArray[np.uint8]:
        """The first `count` bytes of a tensor's data, not copied."""
        offset = self.tensors[name].offset
        if offset + count > len(self._data):
            raise NotAModel(self.path, f"it is cut off in the tensor {name}")
        return np.frombuffer(self._data, np.uint8, count, offset)

    def _read_header(self) -> None:
        self._at = 4
        version, tensors, entries = self._unpack("IQQ")
        if version not in _VERSIONS:
            raise NotAModel(self.path, f"GGUF version {version} is not known (known: 2 and 3)")
        self.metadata = {}
        for _ in range(entries):
            key = self._string()
            self.metadata[key] = self._value(*self._unpack("I"))
        table = {}
        for _ in range(tensors):
            name = self._string()
            shape = self._unpack(f"{self._unpack('I')[0]}Q")[::-1]
            table[name] = (shape, *self._unpack("IQ"))
        alignment = self.metadata.get("general.alignment", 32)
        start = -(-self._at // alignment) * alignment
        self.tensors = {
            name: GgufTensor(shape, kind, start + offset) for name, (shape, kind, offset) in table.items()
        }

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self._data, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def _string(self) -> str:
        (length,) = self._unpack("Q")
        (data,) = self._unpack(f"{length}s")
        return str(data, "utf-8")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            element, count = self._unpack("IQ")
            if element in _SCALARS:
                return list(self._unpack(f"{count}{_SCALARS[element]}"))
            return [self._value(element) for _ in range(count)]
        return self._unpack(_SCALARS[kind])[0]
