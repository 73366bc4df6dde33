"""Reads weights to continue from: GGUF parts, the base's or decision-1's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, ReaderTensor, quants
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from .errors import TrainingError
from .network import Shape, Weights
from .prompt import CONTROL_TOKENS, NO, RECORD, YES

_FIRST_PART = re.compile(r"-00001-of-(\d{5})\.gguf$")


@dataclass(frozen=True)
class Model:
    """Weights from GGUF, and the first file's metadata, which an export copies."""

    path: Path
    shape: Shape
    weights: Weights
    metadata: GGUFReader
    tokenizer: Tokenizer

    def encode(self, text: str) -> list[int]:
        """Returns the text's token ids in the model's vocabulary. No text becomes a special token."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids


def part_paths(first: Path) -> list[Path]:
    """Returns all parts of a model, given its first or only file."""
    match = _FIRST_PART.search(first.name)
    count = int(match[1]) if match else 1
    return [first.with_name(first.name.replace("-00001-of-", f"-{part:05d}-of-")) for part in range(1, count + 1)]


def read_model(first: Path) -> Model:
    """Reads a model from GGUF. Raises `TrainingError` if the files cannot be read, or are no Llama."""
    readers = [_open(path) for path in part_paths(first)]
    metadata = readers[0]
    try:
        weights = {tensor.name: _floats(tensor) for reader in readers for tensor in reader.tensors}
        tokens = _field(metadata, "tokenizer.ggml.tokens")
        shape = _shape(metadata, len(tokens))
        tokenizer = _tokenizer(tokens, _field(metadata, "tokenizer.ggml.merges"))
    except (KeyError, ValueError) as error:
        raise TrainingError(f"{first} is not a Llama that can be trained ({error}).") from error
    embedding = weights["token_embd.weight"]
    if tokens[RECORD : NO + 1] == list(CONTROL_TOKENS.values()):
        weights["control"] = embedding[RECORD : NO + 1].copy()
        weights["readout"] = embedding[YES] - embedding[NO]
    return Model(first, shape, weights, metadata, tokenizer)


def _open(path: Path) -> GGUFReader:
    try:
        return GGUFReader(path)
    except OSError as error:
        raise TrainingError(f"{path} cannot be read ({error.strerror or error}).") from error
    except (ValueError, IndexError, KeyError) as error:
        raise TrainingError(f"{path} is no complete GGUF file ({error}).") from error


def _field(reader: GGUFReader, name: str) -> Any:
    return reader.fields[name].contents()


def _shape(reader: GGUFReader, vocabulary: int) -> Shape:
    def number(name: str) -> float:
        return _field(reader, f"llama.{name}")

    return Shape(
        embedding_length=number("embedding_length"),
        block_count=number("block_count"),
        head_count=number("attention.head_count"),
        head_count_kv=number("attention.head_count_kv"),
        feed_forward_length=number("feed_forward_length"),
        rms_epsilon=number("attention.layer_norm_rms_epsilon"),
        rope_base=number("rope.freq_base"),
        rope_dimensions=number("rope.dimension_count"),
        vocabulary=vocabulary,
    )


def _floats(tensor: ReaderTensor) -> np.ndarray:
    shape = tuple(int(size) for size in reversed(tensor.shape))
    return quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(shape)


def _tokenizer(tokens: list[str], merges: list[str]) -> Tokenizer:
    """Returns SmolLM2's byte-pair encoding."""
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def layers_in(weights: Weights) -> int:
    """Returns the number of layers of weights."""
    return 1 + max(_layer_numbers(weights))


def _layer_numbers(weights: Weights) -> Iterator[int]:
    return (int(name.split(".")[1]) for name in weights if name.startswith("blk."))
