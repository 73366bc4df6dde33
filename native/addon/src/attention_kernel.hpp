#pragma once

#include "attention.hpp"

namespace tds {

namespace attention {

/** Below every score, and finite: the difference of two infinities would be NaN. */
constexpr float LOWEST = -1e30f;
/** The mask's value where a row does not see a cell: minus infinity in 16 bits. */
constexpr uint16_t HIDDEN = 0xfc00;
/** Floats of a head: queries and results, then a running maximum and a running sum for each row. */
constexpr size_t PER_HEAD = 2 * SIZE_MAX_OF_HEAD * ROWS + 2 * ROWS;
/** Floats of a tile: keys and values, then a weight for each cell and row. */
constexpr size_t PER_TILE = 2 * SIZE_MAX_OF_HEAD * CELLS + CELLS * ROWS;

/** Returns the number of tiles of rows. The last one may have fewer rows. */
inline size_t row_tiles(const Operands & operands) { return (operands.rows + ROWS - 1) / ROWS; }

/** Compute one piece, each by its instructions; `numbers` has room for SHARING_MAX heads and a tile. */
void compute_avx512(const Operands & operands, size_t piece, float * numbers);
void compute_avx2(const Operands & operands, size_t piece, float * numbers);

}  // namespace attention

}  // namespace tds
