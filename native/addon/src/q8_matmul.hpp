#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace tds {

/**
 * The product of a matrix of 8-bit weights (ggml's Q8_0) with activations, by the dot product instructions of AVX-512
 * VNNI. ggml's own kernel for these weights unpacks 32 bytes at a time; here 16 rows are multiplied at once, each
 * weight that is loaded serves 12 columns, and a result depends on its row and column only, never on what else is
 * in the batch.
 */
namespace q8 {

/** Rows that are packed together. */
constexpr size_t ROWS = 16;
/** Columns that are multiplied together. */
constexpr size_t COLUMNS = 12;
/** Weights that share a scale, as in ggml. */
constexpr size_t BLOCK = 32;

/** Whether this machine has the instructions. */
bool is_supported();

struct Freed {
    void operator()(void * memory) const { std::free(memory); }
};
using Bytes = std::unique_ptr<uint8_t[], Freed>;

/** Weights of `rows` × `depth`, row-major in blocks of ggml's Q8_0, in the order in which they are multiplied. */
class Weights {
  public:
    /** `rows` is a multiple of ROWS and `depth` of BLOCK. Throws std::bad_alloc. */
    Weights(const void * blocks, size_t rows, size_t depth);

    size_t rows() const { return rows_; }
    size_t depth() const { return depth_; }
    /** The first byte of the tile of rows ROWS · tile …. */
    const uint8_t * tile(size_t tile) const;

  private:
    size_t rows_;
    size_t depth_;
    Bytes bytes_;
};

/** Activations in 8 bits, a scale for each block of each column. */
class Activations {
  public:
    /** Makes room for `columns` of `depth`, a multiple of BLOCK. Throws std::bad_alloc. */
    void resize(size_t columns, size_t depth);

    /** Takes the columns of tile `tile` from `values`, of which column `c` starts at `values + c * stride` bytes. */
    void quantize(const float * values, size_t stride, size_t tile);

    size_t columns() const { return columns_; }
    size_t tiles() const { return (columns_ + COLUMNS - 1) / COLUMNS; }
    /** The first byte of the tile of columns COLUMNS · tile …. */
    const uint8_t * tile(size_t tile) const;

  private:
    size_t columns_ = 0;
    size_t depth_ = 0;
    size_t capacity_ = 0;
    Bytes bytes_;
};

/**
 * Writes the products of row tiles `first_tile` to `last_tile` (not included) with every column: row `r` of column `c`
 * goes to `result + c * stride` bytes, at index `r`.
 */
void multiply(const Weights & weights, size_t first_tile, size_t last_tile, const Activations & activations,
              float * result, size_t stride);

}  // namespace q8

}  // namespace tds
