#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tds {

/**
 * Attention over a cache of 16-bit keys and values, by AVX-512. ggml's own kernel converts and masks every tile of
 * the cache anew for each head; here a tile of keys and values serves all heads that share it, a tile that no row
 * sees is skipped by a look at its mask, and rows are lanes, so that no sum goes across a register.
 *
 * As in ggml's, the cache is walked in tiles of CELLS cells and the running maximum moves once a tile: a row's bits
 * depend on which tiles its cells are in, and on nothing else in the batch.
 */
namespace attention {

/** Rows (queries of one head) that are computed together, and cells of a tile. */
constexpr size_t ROWS = 64;
constexpr size_t CELLS = 64;
/** The largest head size, and the most heads that may share keys and values. */
constexpr size_t SIZE_MAX_OF_HEAD = 128;
constexpr size_t SHARING_MAX = 16;

/** Where tensors are; strides in bytes. All heads have `head_size` numbers, a multiple of 16. */
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
    /** For each row and cell 16 bits: those of minus infinity where the row does not see the cell, else 0. */
    const char * mask;
    size_t mask_row_stride;
    char * result;
    size_t result_row_stride;
    size_t result_head_stride;
};

/** What one thread needs beside the operands. */
class Scratch {
  public:
    Scratch();

  private:
    friend class Worker;
    std::vector<float> numbers_;
};

/** Pieces of work that threads may share: a tile of rows of the heads that share keys and values. */
size_t pieces(const Operands & operands);

/** Computes one piece; pieces write to different places. */
void compute(const Operands & operands, size_t piece, Scratch & scratch);

}  // namespace attention

}  // namespace tds
