"""Reads a GGUF file, and writes it again in the one encoding that the engine computes rightly.

The engine opens quantised files, but of 40 greedy replies from its own reading of a Q4_1 file
none equalled llama.cpp's; with the weights dequantised to F16 more than 32 do, and the rest
differ by rounding. It also ignores tensors and keys it does not know, so those are refused
here. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from formatspan.errors import BackendError

ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""Those that the engine builds from a GGUF file (``create_from_gguf`` in openvino.genai)."""

_TENSOR = re.compile(
    r"(?:token_embd|output_norm|output|"
    r"blk\.\d+\.(?:attn_(?:norm|q|k|v|output|q_norm|k_norm)|ffn_(?:norm|gate|up|down)))"
    r"\.(?:weight|bias)"
)
"""Tensors that the engine computes with; it would leave out others without a word."""

_F16_FILE = 1
"""``general.file_type`` of a file whose weights are mostly F16."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What of a model file matters outside it."""

    architecture: str
    encoding: str
    """Tensor types of the file, the most frequent first: ``Q4_1, F32, Q8_0``."""
    context_tokens: int
    kv_values: int
    """Numbers that the key-value cache holds for each token."""
    stop_ids: tuple[int, ...]
    """Ids of the tokens that end a turn."""
    add_bos: bool
    """The model wants its first token before a text, which a chat template may also write."""
    chat_template: str


class ModelFile:
    """An open GGUF file.

    Raises:
        BackendError: It is not one, or the engine cannot compute it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._gguf = _library()
        if not _has_magic(path):
            raise BackendError(f"model file {path} is not a GGUF file")
        try:
            self._reader = self._gguf.GGUFReader(str(path))
        except (ValueError, IndexError, KeyError, OverflowError) as error:
            raise BackendError(f"model file {path} is damaged: {_line(error)}") from error
        self._check()

    def facts(self) -> Facts:
        """What of the file matters outside it."""
        arch = self._need("general.architecture")
        heads = int(self._need(f"{arch}.attention.head_count"))
        size = int(self._get(f"{arch}.attention.key_length") or self._width(arch) // heads)
        kv_heads = int(self._get(f"{arch}.attention.head_count_kv") or heads)
        ends = (self._need("tokenizer.ggml.eos_token_id"), self._get("tokenizer.ggml.eot_token_id"))
        return Facts(
            architecture=arch,
            encoding=self._encoding(),
            context_tokens=int(self._need(f"{arch}.context_length")),
            kv_values=2 * int(self._need(f"{arch}.block_count")) * kv_heads * size,
            stop_ids=tuple(dict.fromkeys(int(i) for i in ends if i is not None)),
            add_bos=bool(self._get("tokenizer.ggml.add_bos_token")),
            chat_template=str(self._need("tokenizer.chat_template")),
        )

    def write_vocabulary(self, target: Path) -> None:
        """Write the file without its tensors: all that a tokenizer is made of."""
        writer = self._writer(target)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def write_f16(self, target: Path, progress: Callable[[int, int], None]) -> None:
        """Write the file with its matrices in F16 and its vectors in F32.

        Args:
            target: File to write.
            progress: Called with the tensors done and their number.
        """
        tensors = self._reader.tensors
        writer = self._writer(target)
        for tensor in tensors:
            kind = np.dtype(_kind(tensor))
            shape = tuple(int(n) for n in reversed(tensor.shape))
            writer.add_tensor_info(tensor.name, shape, kind, int(np.prod(shape)) * kind.itemsize)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for done, tensor in enumerate(tensors, start=1):  # one at a time: little memory
            writer.write_tensor_data(self._values(tensor))
            progress(done, len(tensors))
        writer.close()

    def _values(self, tensor: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401
        values = self._gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        return np.asarray(values, dtype=_kind(tensor))

    def _writer(self, target: Path) -> Any:  # noqa: ANN401
        kinds = self._gguf.GGUFValueType
        writer = self._gguf.GGUFWriter(str(target), self._need("general.architecture"))
        for key, field in self._reader.fields.items():
            if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
                continue
            kind = field.types[0]
            inner = field.types[-1] if kind == kinds.ARRAY else None
            writer.add_key_value(key, field.contents(), kind, sub_type=inner)
        writer.add_file_type(_F16_FILE)
        return writer

    def _check(self) -> None:
        arch = self._need("general.architecture")
        if arch not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            self._refuse(f"its architecture is {arch!r}, and the engine has {known}")
        scaling = self._get(f"{arch}.rope.scaling.type")
        if scaling not in (None, "none"):
            self._refuse(f"it scales positions ({scaling}), which the engine does not compute")
        self._need("tokenizer.ggml.tokens")
        self._need("tokenizer.chat_template")
        for tensor in self._reader.tensors:
            self._check_tensor(tensor)

    def _check_tensor(self, tensor: Any) -> None:  # noqa: ANN401
        if not _TENSOR.fullmatch(tensor.name):
            self._refuse(f"the engine does not compute its tensor {tensor.name!r}")
        plain = ("F32", "F16")
        if tensor.tensor_type.name not in plain and not self._readable(tensor.tensor_type):
            self._refuse(f"its tensor {tensor.name!r} has the type {tensor.tensor_type.name}")

    def _readable(self, kind: Any) -> bool:  # noqa: ANN401
        width = self._gguf.GGML_QUANT_SIZES[kind][1]
        try:
            self._gguf.quants.dequantize(np.zeros((1, width), dtype=np.uint8), kind)
        except (NotImplementedError, ValueError):
            return False
        return True

    def _encoding(self) -> str:
        names = [tensor.tensor_type.name for tensor in self._reader.tensors]
        return ", ".join(sorted(set(names), key=lambda name: (-names.count(name), name)))

    def _width(self, arch: str) -> int:
        return int(self._need(f"{arch}.embedding_length"))

    def _get(self, key: str) -> Any:  # noqa: ANN401 - values are of many types
        field = self._reader.get_field(key)
        return None if field is None else field.contents()

    def _need(self, key: str) -> Any:  # noqa: ANN401
        value = self._get(key)
        if value is None:
            why = ": it is no instruct model" if key == "tokenizer.chat_template" else ""
            self._refuse(f"it has no {key}{why}")
        return value

    def _refuse(self, reason: str) -> None:
        raise BackendError(f"model file {self.path} cannot be used: {reason}")


def _kind(tensor: Any) -> type[np.floating[Any]]:  # noqa: ANN401
    """Norms and biases stay F32, as in every F16 file that llama.cpp writes."""
    return np.float32 if len(tensor.shape) == 1 else np.float16


def _has_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError as error:
        raise BackendError(f"model file {path} cannot be read: {error.strerror}") from error


def _library() -> Any:  # noqa: ANN401 - the library has no types
    try:
        import gguf
        import gguf.quants
    except ImportError as error:
        raise BackendError(
            f"GGUF files cannot be read ({error}): pip install 'formatspan[local]'"
        ) from error
    return gguf


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
