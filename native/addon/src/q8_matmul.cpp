#include "q8_matmul.hpp"

#include <algorithm>

#include "ggml.h"
#include "q8_kernel.hpp"

namespace tds {

namespace q8 {

namespace {

/** A block of ggml's Q8_0. */
struct Block {
    ggml_fp16_t scale;
    int8_t weights[BLOCK];
};
static_assert(sizeof(Block) == 2 + BLOCK, "Q8_0 has no padding");

}  // namespace

const Kernel * kernel_of(Instructions instructions) {
    switch (instructions) {
        case Instructions::AMX:
            return amx_kernel();
        case Instructions::AVX512:
            return avx512_kernel();
        case Instructions::AVX2:
            return avx2_kernel();
        case Instructions::NONE:
            break;
    }
    return nullptr;
}

Weights::Weights(const Kernel & kernel, const void * blocks, size_t rows, size_t depth, LargePages & memory)
    : kernel_(kernel),
      rows_(rows),
      depth_(depth),
      bytes_(memory.take(rows / ROWS * (depth / BLOCK) * kernel.row_block)) {
    const auto * from = static_cast<const Block *>(blocks);
    const size_t row_blocks = depth / BLOCK;
    for (size_t row = 0; row < rows; row++) {
        uint8_t * to = bytes_ + row / ROWS * row_blocks * kernel.row_block;
        for (size_t i = 0; i < row_blocks; i++, from++, to += kernel.row_block) {
            kernel.pack(from->weights, ggml_fp16_to_fp32(from->scale), row % ROWS, to);
        }
    }
}

const uint8_t * Weights::tile(size_t tile) const {
    return bytes_ + tile * (depth_ / BLOCK) * kernel_.row_block;
}

void Activations::resize(size_t columns, size_t depth) {
    columns_ = columns;
    depth_ = depth;
    const size_t size = tiles() * (depth / BLOCK) * kernel_.column_block;
    if (size <= capacity_) return;
    bytes_ = allocate_aligned(size, CACHE_LINE);
    capacity_ = size;
}

size_t Activations::tiles() const { return (columns_ + kernel_.columns - 1) / kernel_.columns; }

size_t Activations::columns_of(size_t tile) const {
    return std::min(kernel_.columns, columns_ - tile * kernel_.columns);
}

const uint8_t * Activations::tile(size_t tile) const {
    return bytes_.get() + tile * (depth_ / BLOCK) * kernel_.column_block;
}

void Activations::quantize(const float * values, size_t stride, size_t tile) {
    uint8_t * bytes = bytes_.get() + tile * (depth_ / BLOCK) * kernel_.column_block;
    const auto * from = reinterpret_cast<const char *>(values) + tile * kernel_.columns * stride;
    for (size_t column = 0; column < columns_of(tile); column++, from += stride) {
        kernel_.quantize(reinterpret_cast<const float *>(from), depth_ / BLOCK, column, bytes);
    }
}

void multiply(const Weights & weights, size_t first_tile, size_t last_tile, const Activations & activations,
              float * result, size_t stride) {
    const Kernel & kernel = weights.kernel();
    const size_t blocks = weights.depth() / BLOCK;
    const size_t tiles_at_once = kernel.columns_at_once / kernel.columns;
    const size_t row_bytes = kernel.row_tiles * blocks * kernel.row_block;
    auto * bytes = reinterpret_cast<char *>(result);
    if (kernel.take_registers) kernel.take_registers();
    for (size_t first = 0; first < activations.tiles(); first += tiles_at_once) {
        const size_t last = std::min(first + tiles_at_once, activations.tiles());
        // While a tile is multiplied, its part of the next rows comes from memory.
        const size_t part = round_up(row_bytes / (last - first), CACHE_LINE);
        for (size_t row_tile = first_tile; row_tile < last_tile; row_tile += kernel.row_tiles) {
            const size_t row_tiles = std::min(kernel.row_tiles, last_tile - row_tile);
            const uint8_t * rows = weights.tile(row_tile);
            const uint8_t * next = rows + row_bytes;
            for (size_t tile = first; tile < last; tile++, next += part) {
                prefetch<2>(next, part);
                kernel.multiply(rows, row_tiles, activations.tile(tile), activations.columns_of(tile), blocks,
                                bytes + tile * kernel.columns * stride + row_tile * ROWS * sizeof(float), stride);
            }
        }
    }
    if (kernel.leave_registers) kernel.leave_registers();
}

}  // namespace q8

}  // namespace tds
