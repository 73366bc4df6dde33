"""Writes weights as GGUF parts that the service loads.

The control tokens take the ids 3 to 8. The rows of YES and NO hold plus and minus half of the readout, so that
logit(YES) - logit(NO) is an option's score.
"""

import shutil
from pathlib import Path

import gguf
import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter, quants

from .errors import TrainingError
from .network import POSITIONS, TRAINED_POSITIONS, YARN_FACTOR, Weights
from .prompt import CONTROL_TOKENS, NO, RECORD, YES
from .restore import Model, layers_in

PART_BYTES_MAX = 48_000_000
_CONTROL_TYPE = 3
_MOSTLY_Q8_0 = 7
_Q8_0 = gguf.GGMLQuantizationType.Q8_0
# The bytes of a number: 32 share a scale.
_Q8_0_BYTES = 34 / 32
# Metadata of the base that is not copied: its chat template means nothing here, and the writer sets the architecture.
_LEFT_OUT = {
    "general.architecture", "general.organization", "general.size_label", "tokenizer.chat_template", "split.no",
    "split.count", "split.tensors.count",
}  # fmt: skip


def export(model: Model, weights: Weights, folder: Path, name: str) -> Path:
    """Writes GGUF parts into a new folder, all or nothing, and returns the path of the first.

    `model` gives the vocabulary and the embedding, `weights` what was trained.
    """
    temporary = new_folder(folder)
    write_parts(model, weights, temporary, name)
    temporary.rename(folder)
    return min(folder.glob("*.gguf"))


def new_folder(folder: Path) -> Path:
    """Makes an empty folder beside `folder`, to rename in the end. Raises `TrainingError` if `folder` exists."""
    if folder.exists():
        raise TrainingError(f"{folder} is there already: name a new folder.")
    temporary = folder.with_name(folder.name + ".new")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    return temporary


def write_parts(model: Model, weights: Weights, folder: Path, name: str) -> None:
    """Writes GGUF parts of less than 50 MB, matrices in Q8_0, into an existing folder."""
    values = sum(tensor.size for tensor in weights.values()) + model.weights["token_embd.weight"].size
    is_split = values * _Q8_0_BYTES > PART_BYTES_MAX
    writer = GGUFWriter(folder / f"{name}.gguf", "llama", split_max_size=PART_BYTES_MAX if is_split else 0)
    _copy_metadata(model.metadata, writer, _metadata_of(name, layers_in(weights)))
    embedding = model.weights["token_embd.weight"].copy()
    embedding[RECORD:YES] = weights["control"][: YES - RECORD]
    embedding[YES], embedding[NO] = weights["readout"] / 2, -weights["readout"] / 2
    for tensor_name, tensor in {"token_embd.weight": embedding, **weights}.items():
        if tensor_name in ("control", "readout"):
            continue
        values = embedding if tensor_name == "token_embd.weight" else tensor.astype(np.float32)
        if values.ndim == 1:
            writer.add_tensor(tensor_name, values)
        else:
            writer.add_tensor(tensor_name, quants.quantize(values, _Q8_0), raw_dtype=_Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _metadata_of(name: str, layers: int) -> dict[str, str | int | float]:
    return {
        "general.name": name,
        "general.basename": name,
        "general.finetune": "typed-decisions",
        "general.file_type": _MOSTLY_Q8_0,
        "llama.block_count": layers,
        "llama.context_length": POSITIONS,
        "llama.rope.scaling.type": "yarn",
        "llama.rope.scaling.factor": YARN_FACTOR,
        "llama.rope.scaling.original_context_length": TRAINED_POSITIONS,
    }


def _copy_metadata(source: GGUFReader, writer: GGUFWriter, own: dict[str, str | int | float]) -> None:
    for field in source.fields.values():
        if field.name.startswith("GGUF.") or field.name in own or field.name in _LEFT_OUT:
            continue
        value = field.contents()
        if field.name == "tokenizer.ggml.tokens":
            value = [CONTROL_TOKENS.get(index, token) for index, token in enumerate(value)]
        if field.name == "tokenizer.ggml.token_type":
            value = [_CONTROL_TYPE if index in CONTROL_TOKENS else kind for index, kind in enumerate(value)]
        if field.types[0] == GGUFValueType.ARRAY:
            writer.add_array(field.name, value)
        else:
            writer.add_key_value(field.name, value, field.types[0])
    for key, value in own.items():
        add = {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32}[type(value)]
        add(key, value)
