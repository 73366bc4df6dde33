#pragma once

#include <cstddef>
#include <cstdint>

#include "instructions.hpp"
#include "memory.hpp"

namespace tds {

/**
 * Products of a matrix of 8-bit weights (ggml's Q8_0) with activations. ggml's own kernels unpack 32 bytes at a time.
 * These multiply 16 rows at once and use each loaded weight for several columns. A result depends on its row and column
 * only, never on the rest of the batch. It has the same bits with any instructions.
 */
namespace q8 {

/** Rows that are packed together. */
constexpr size_t ROWS = 16;
/** Weights that share a scale, as in ggml. */
constexpr size_t BLOCK = 32;

struct Kernel;
/** Returns the kernel for these instructions; null for NONE. */
const Kernel * kernel_of(Instructions instructions);

/** A matrix of `rows` × `depth` weights, packed in the order in which a kernel multiplies them. */
class Weights {
  public:
    /**
     * Packs ggml's Q8_0 blocks, which are row-major, into `memory`, which outlives this object. `rows` is a multiple of
     * ROWS and `depth` of BLOCK. Throws std::bad_alloc.
     */
    Weights(const Kernel & kernel, const void * blocks, size_t rows, size_t depth, LargePages & memory);

    const Kernel & kernel() const { return kernel_; }
    size_t rows() const { return rows_; }
    size_t depth() const { return depth_; }
    /** Returns the first byte of a tile, whose first row is ROWS · tile. */
    const uint8_t * tile(size_t tile) const;

  private:
    const Kernel & kernel_;
    size_t rows_;
    size_t depth_;
    uint8_t * bytes_;
};

/** Activations in 8 bits, with a scale for each block of each column. */
class Activations {
  public:
    explicit Activations(const Kernel & kernel) : kernel_(kernel) {}

    /** Makes room for `columns` × `depth` activations; `depth` is a multiple of BLOCK. Throws std::bad_alloc. */
    void resize(size_t columns, size_t depth);

    /** Quantizes the columns of a tile. Column `c` of `values` starts `c * stride` bytes after its first. */
    void quantize(const float * values, size_t stride, size_t tile);

    /** Returns the number of tiles. Each has as many columns as the kernel multiplies together. */
    size_t tiles() const;
    /** Returns the number of a tile's columns. The last tile may have fewer. */
    size_t columns_of(size_t tile) const;
    /** Returns the first byte of a tile. */
    const uint8_t * tile(size_t tile) const;

  private:
    const Kernel & kernel_;
    size_t columns_ = 0;
    size_t depth_ = 0;
    size_t capacity_ = 0;
    Bytes bytes_;
};

/**
 * Multiplies the row tiles from `first_tile` up to, and without, `last_tile` with every column. The result for row `r`
 * and column `c` goes to index `r` of the floats that start `c * stride` bytes after `result`. Weights and activations
 * are of the same kernel.
 */
void multiply(const Weights & weights, size_t first_tile, size_t last_tile, const Activations & activations,
              float * result, size_t stride);

}  // namespace q8

}  // namespace tds
