#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "instructions.hpp"

namespace tds {

/**
 * Attention over a cache of 16-bit keys and values. ggml's own kernel converts and masks every tile of the cache for
 * each head. This one converts a tile once for all heads that share it, and skips a tile that no row sees by its mask.
 * Both products are of 16-bit integers, of which a CPU multiplies twice as many at a time as of 32-bit floats. Each row
 * has a SIMD lane of its own, so no sum goes across a register.
 *
 * Like ggml's kernel, it walks the cache in tiles of CELLS cells and updates the running maximum once for each tile. A
 * row's bits depend on which tiles its cells are in, and on nothing else: not on the batch, not on the instructions.
 */
namespace attention {

/** Rows (queries of one head) that are computed together, and KV cells of a tile. `Worker` needs both as they are. */
constexpr size_t ROWS = 64;
constexpr size_t CELLS = 64;
/** The largest head size, and the largest number of heads that share keys and values. */
constexpr size_t SIZE_MAX_OF_HEAD = 128;
constexpr size_t SHARING_MAX = 16;

/** The tensors of one attention operation; strides are in bytes. `head_size` is a multiple of 16. */
struct Operands {
    size_t head_size;
    size_t rows;
    size_t cells;
    size_t heads;
    /** A divisor of `heads`. */
    size_t cache_heads;
    float scale;
    const char * queries;
    size_t query_row_stride;
    size_t query_head_stride;
    const char * keys;
    size_t key_cell_stride;
    size_t key_head_stride;
    const char * values;
    size_t value_cell_stride;
    size_t value_head_stride;
    /** A 16-bit float for each row and cell: minus infinity where the row does not see the cell, else 0. */
    const char * mask;
    size_t mask_row_stride;
    char * result;
    size_t result_row_stride;
    size_t result_head_stride;
};

struct Memory;

/** Working memory of one thread. */
class Scratch {
  public:
    Scratch();
    Scratch(Scratch &&) noexcept;
    ~Scratch();

  private:
    friend void compute(Instructions, const Operands &, size_t, Scratch &);
    std::unique_ptr<Memory> memory_;
};

/** Returns the number of pieces of work: one for each tile of rows and each head of the cache. */
size_t pieces(const Operands & operands);

/**
 * Computes one piece by these instructions, which are not NONE. Pieces write to different memory, so threads may
 * compute them in parallel.
 */
void compute(Instructions instructions, const Operands & operands, size_t piece, Scratch & scratch);

}  // namespace attention

}  // namespace tds
