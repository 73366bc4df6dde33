#pragma once

#include <cstddef>
#include <cstdint>

#include "q8_matmul.hpp"

namespace tds {

namespace q8 {

/**
 * The kernel of a kind of CPU: its layouts of packed weights and quantized activations, and its product. All kinds give
 * the same bits, because sums of 8-bit products are exact and scales are applied in the same order.
 */
struct Kernel {
    /** Columns that are multiplied together. */
    size_t columns;
    /** Columns that a row tile is multiplied with before the next row tile, so that they stay in the level 2 cache. */
    size_t columns_at_once;
    /** Row tiles that are multiplied together. */
    size_t row_tiles;
    /** Bytes of a block of ROWS rows, and of a block of `columns` columns. */
    size_t row_block;
    size_t column_block;
    /** Packs a row's weights of a block of ROWS rows. */
    void (*pack)(const int8_t (&weights)[BLOCK], float scale, size_t row, uint8_t * block);
    /** Quantizes a column of a tile of columns: `blocks` times BLOCK values. */
    void (*quantize)(const float * values, size_t blocks, size_t column, uint8_t * tile);
    /**
     * Multiplies neighbouring tiles of rows, at most `row_tiles`, with the first `count` columns of a tile of columns;
     * `stride` is in bytes.
     */
    void (*multiply)(const uint8_t * rows, size_t tiles, const uint8_t * columns, size_t count, size_t blocks,
                     char * result, size_t stride);
    /** Called on a thread before and after its products; null if nothing is to be set. */
    void (*take_registers)() = nullptr;
    void (*leave_registers)() = nullptr;
};

/** Each returns null on another kind of machine. */
const Kernel * amx_kernel();
const Kernel * avx512_kernel();
const Kernel * avx2_kernel();

}  // namespace q8

}  // namespace tds
