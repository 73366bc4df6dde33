"""decision-1's network: a Llama cut to its first layers, with six trained control tokens and one readout vector.

Positions reach 16K by YaRN over the base's 8K. Within the network, the rotary pairs of queries and keys lie as two
halves, which CPUs compute faster; `load_weights` and `weights_of` convert from and to the interleaved pairs of GGUF.
"""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .prompt import CONTROL_TOKENS, NO, RECORD, YES, Encode

# Tensors by their names in GGUF; "control" and "readout" are rows of its embedding.
Weights = dict[str, np.ndarray]

TRAINED_POSITIONS, POSITIONS = 8192, 16384
YARN_FACTOR = POSITIONS / TRAINED_POSITIONS
# An additive mask that stays finite in bfloat16; its exponential is 0.
MASKED = -1e4
# The control tokens of a base without any begin as the mean of these tokens.
_FIRST_MEANINGS = {
    "<|record|>": ["document", " document"],
    "<|question|>": ["Question", " question"],
    "<|option|>": ["-", " option"],
    "<|answer|>": ["?", " correct"],
    "<|yes|>": [" yes", " Yes"],
    "<|no|>": [" no", " No"],
}


@dataclass(frozen=True)
class Shape:
    """A Llama's hyperparameters, by their names in GGUF."""

    embedding_length: int
    block_count: int
    head_count: int
    head_count_kv: int
    feed_forward_length: int
    rms_epsilon: float
    rope_base: float
    rope_dimensions: int
    vocabulary: int


def yarn(dimensions: int, base: float) -> tuple[Tensor, float]:
    """Returns the inverse frequencies of rotary positions, and the scale of cosine and sine, as llama.cpp computes
    YaRN."""

    def dimension_of(rotations: float) -> float:
        return dimensions * math.log(TRAINED_POSITIONS / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low = max(0, math.floor(dimension_of(32.0)))
    high = min(dimensions - 1, math.ceil(dimension_of(1.0)))
    pair = torch.arange(0, dimensions, 2).float() / 2
    kept = 1 - ((pair - low) / max(0.001, high - low)).clamp(0, 1)
    frequencies = base ** (-2 * pair / dimensions)
    return frequencies / YARN_FACTOR * (1 - kept) + frequencies * kept, 1 + 0.1 * math.log(YARN_FACTOR)


class RootMeanSquareNorm(nn.Module):
    """Llama's normalization, computed in the type of its input."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """`x`, normalized over its last dimension."""
        return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.epsilon)


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Grouped-query attention: queries [B, heads, L, D], keys and values [B, kv heads, L, D], mask [B, 1, L, L]."""
    batch, heads, length, width = queries.shape
    shared = heads // keys.shape[1]
    if queries.is_cuda:
        keys, values = keys.repeat_interleave(shared, 1), values.repeat_interleave(shared, 1)
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask.to(values.dtype))
    # PyTorch's flash kernel is slow backwards on CPUs, so this multiplies matrices of all queries that share keys at
    # once.
    grouped = (queries * width**-0.5).reshape(-1, shared * length, width)
    keys, values = keys.reshape(-1, length, width), values.reshape(-1, length, width)
    scores = torch.bmm(grouped, keys.transpose(1, 2)).view(batch, heads, length, length)
    attention = F.softmax(scores + mask.to(scores.dtype), -1).to(values.dtype)
    return torch.bmm(attention.view(-1, shared * length, length), values).view(batch, heads, length, width)


class Block(nn.Module):
    """One layer: attention with rotary positions, and a gated feed-forward."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_width = shape.head_count, shape.head_count_kv, shape.rope_dimensions
        width, inner = shape.embedding_length, self.head_width
        self.attention_norm = RootMeanSquareNorm(width, shape.rms_epsilon)
        self.query_key_value = nn.Linear(width, (self.heads + 2 * self.kv_heads) * inner, bias=False)
        self.attention_output = nn.Linear(self.heads * inner, width, bias=False)
        self.feed_forward_norm = RootMeanSquareNorm(width, shape.rms_epsilon)
        self.gate_up = nn.Linear(width, 2 * shape.feed_forward_length, bias=False)
        self.down = nn.Linear(shape.feed_forward_length, width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor, mask: Tensor) -> Tensor:
        """The layer's output [B, L, width]; cosine and sine are [B, L, 1, D / 2], the mask [B, 1, L, L]."""
        batch, length, _ = x.shape
        rotated, half = self.heads + self.kv_heads, self.head_width // 2
        projected = self.query_key_value(self.attention_norm(x)).view(batch, length, -1, self.head_width)
        values = projected[:, :, rotated:]
        first, second = projected[:, :, :rotated, :half], projected[:, :, :rotated, half:]
        turned = torch.cat((first * cosine - second * sine, first * sine + second * cosine), -1).to(values.dtype)
        queries, keys = turned[:, :, : self.heads], turned[:, :, self.heads :]
        attended = attend(queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), mask)
        x = x + self.attention_output(attended.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.gate_up(self.feed_forward_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Network(nn.Module):
    """Computes scores of options from tokens. The embedding of text is the base's and is not trained."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.embedding_length)
        self.embedding.weight.requires_grad_(False)
        self.control = nn.Parameter(torch.zeros(len(CONTROL_TOKENS), shape.embedding_length))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.block_count))
        self.output_norm = RootMeanSquareNorm(shape.embedding_length, shape.rms_epsilon)
        self.readout = nn.Parameter(torch.zeros(shape.embedding_length))
        frequencies, self.rotary_scale = yarn(shape.rope_dimensions, shape.rope_base)
        self.register_buffer("frequencies", frequencies, persistent=False)
        # The type of values between layers.
        self.stream_type = torch.float32

    def freeze(self, layers: int) -> None:
        """Leaves the first layers as they are, and the control tokens, whose gradient would pass through them."""
        if layers > 0:
            self.control.requires_grad_(False)
        for block in self.blocks[:layers]:
            block.requires_grad_(False)

    def forward(self, tokens: Tensor, positions: Tensor, mask: Tensor, reads: Tensor) -> Tensor:
        """The score at each read. tokens, positions: [B, L]; mask: [B, 1, L, L]; reads: indexes into B x L."""
        angles = (positions.float()[..., None] * self.frequencies)[:, :, None]
        cosine = (angles.cos() * self.rotary_scale).to(self.stream_type)
        sine = (angles.sin() * self.rotary_scale).to(self.stream_type)
        is_control = (tokens >= RECORD) & (tokens <= NO)
        control = self.control[(tokens - RECORD).clamp(0, NO - RECORD)]
        x = torch.where(is_control[..., None], control, self.embedding(tokens)).to(self.stream_type)
        for block in self.blocks:
            x = block(x, cosine, sine, mask)
        return self.output_norm(x.flatten(0, 1)[reads].float()) @ self.readout


@dataclass(frozen=True)
class Compute:
    """The device and precision of a network: products are in bfloat16 or in float32."""

    device: str
    bfloat16: bool

    @staticmethod
    def of_this_machine(precision: str = "auto") -> "Compute":
        """Returns a GPU if there is one. The default is bfloat16 only if the hardware has it, because others emulate it
        slowly."""
        if torch.cuda.is_available():
            return Compute("cuda", precision != "float32")
        native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        return Compute("cpu", precision == "bfloat16" or (precision == "auto" and native))

    def place(self, network: Network) -> Network:
        """Returns the network on this device. A CPU also keeps bfloat16 between layers, a GPU only within products."""
        network.stream_type = torch.bfloat16 if self.bfloat16 and self.device == "cpu" else torch.float32
        return network.to(self.device)

    def products(self) -> AbstractContextManager:
        """Returns the context in which the network's products are computed."""
        return torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.bfloat16)


def _halves(shape: Shape) -> Tensor:
    """Returns the source of each row of queries and keys when their rotary pairs become halves."""
    pairs = torch.arange(shape.rope_dimensions).view(-1, 2).T.flatten()
    heads = torch.arange(shape.head_count + shape.head_count_kv)[:, None] * shape.rope_dimensions
    return (heads + pairs).flatten()


def build_network(shape: Shape, weights: Weights, encode: Encode, layers: int | None = None) -> Network:
    """Makes a network of the first `layers` layers; all by default. `encode` makes a base's control tokens."""
    network = Network(replace(shape, block_count=layers or shape.block_count))
    with torch.no_grad():
        network.embedding.weight.copy_(torch.from_numpy(weights["token_embd.weight"]))
        if "control" not in weights:
            for row, words in enumerate(_FIRST_MEANINGS.values()):
                network.control[row] = network.embedding.weight[
                    [token for word in words for token in encode(word)]
                ].mean(0)
            network.readout.copy_(network.control[YES - RECORD] - network.control[NO - RECORD])
    load_weights(network, weights)
    return network


def load_weights(network: Network, weights: Weights) -> None:
    """Copies weights into the trained part of a network."""
    order = _halves(network.shape)

    def tensor(name: str) -> Tensor:
        return torch.from_numpy(np.asarray(weights[name], np.float32))

    with torch.no_grad():
        if "control" in weights:
            network.control.copy_(tensor("control"))
            network.readout.copy_(tensor("readout"))
        network.output_norm.weight.copy_(tensor("output_norm.weight"))
        for layer, block in enumerate(network.blocks):
            part = {name: tensor(f"blk.{layer}.{name}.weight") for name in _BLOCK_TENSORS}
            rotated = torch.cat([part["attn_q"], part["attn_k"]])[order]
            block.query_key_value.weight.copy_(torch.cat([rotated, part["attn_v"]]))
            block.gate_up.weight.copy_(torch.cat([part["ffn_gate"], part["ffn_up"]]))
            block.attention_norm.weight.copy_(part["attn_norm"])
            block.attention_output.weight.copy_(part["attn_output"])
            block.feed_forward_norm.weight.copy_(part["ffn_norm"])
            block.down.weight.copy_(part["ffn_down"])


_BLOCK_TENSORS = (
    "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
)  # fmt: skip


def weights_of(network: Network) -> Weights:
    """Returns the trained part of a network: all but the embedding."""
    shape = network.shape
    back = torch.argsort(_halves(shape))
    queries = shape.head_count * shape.rope_dimensions
    found = {"output_norm.weight": network.output_norm.weight, "readout": network.readout, "control": network.control}
    for layer, block in enumerate(network.blocks):
        joined = block.query_key_value.weight.detach().cpu()
        rotated, values = joined[: len(back)][back], joined[len(back) :]
        gate, up = block.gate_up.weight.chunk(2)
        tensors = (
            block.attention_norm.weight, rotated[:queries], rotated[queries:], values, block.attention_output.weight,
            block.feed_forward_norm.weight, gate, up, block.down.weight,
        )  # fmt: skip
        for name, tensor in zip(_BLOCK_TENSORS, tensors, strict=True):
            found[f"blk.{layer}.{name}.weight"] = tensor
    return {name: tensor.detach().float().cpu().numpy().copy() for name, tensor in found.items()}
