#pragma once

#include <limits>
#include <vector>

#include "attention.hpp"

namespace tds {

namespace attention {

/** Below every score, and finite: the difference of two infinities would be NaN. */
constexpr float LOWEST = -1e30f;
/** The mask's value where a row does not see a cell: minus infinity in 16 bits. */
constexpr uint16_t HIDDEN = 0xfc00;
/** The length of a query and of a key in integers: their product, 2 to the power of 30 at most, has room in 32 bits. */
constexpr float LENGTH = 32700.0f;
/** Bits of the largest number of a cell's values. */
constexpr int VALUE_BITS = 12;
/** The smallest 16-bit float that is not 0. */
constexpr float SMALLEST_VALUE = 5.9604644775390625e-8f;
/**
 * The largest weight of a tile is 2 to the power of this, 8,189: that weight times the largest value, in each of CELLS
 * cells, still has room in 32 bits.
 */
constexpr float WEIGHT_POWER = 12.9995f;
constexpr float LOG2_E = 1.44269504f;
constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

/** The queries and results of one head. */
struct alignas(64) Head {
    /** Pairs of 16-bit integers, ROWS for each pair of numbers of the head. */
    int32_t queries[SIZE_MAX_OF_HEAD / 2 * ROWS];
    float query_scales[ROWS];
    /** ROWS for each number of the head. */
    float results[SIZE_MAX_OF_HEAD * ROWS];
    /** The largest score so far, and the sum of the weights. */
    float maxima[ROWS];
    float sums[ROWS];
};

/** A tile of the cache, and what the rows of a head make of it. */
struct alignas(64) Tile {
    /** Pairs of 16-bit integers: of each cell, and of two cells each. */
    int32_t keys[CELLS * SIZE_MAX_OF_HEAD / 2];
    int32_t values[CELLS / 2 * SIZE_MAX_OF_HEAD];
    float key_scales[CELLS];
    /** The power of two that a cell's integers are multiples of, and its inverse. */
    float value_powers[CELLS];
    float value_scales[CELLS];
    /** ROWS for each cell, and for two cells each. */
    float scores[CELLS * ROWS];
    int32_t weights[CELLS / 2 * ROWS];
    /** The factors of earlier results, and of this tile's. */
    float fades[ROWS];
    float gains[ROWS];
};

struct Memory {
    std::vector<Head> heads = std::vector<Head>(SHARING_MAX);
    Tile tile;
};

/** Returns the number of tiles of rows. The last one may have fewer rows. */
inline size_t row_tiles(const Operands & operands) { return (operands.rows + ROWS - 1) / ROWS; }

/** Compute one piece, each by its instructions. */
void compute_avx512(const Operands & operands, size_t piece, Memory & memory);
void compute_avx2(const Operands & operands, size_t piece, Memory & memory);

}  // namespace attention

}  // namespace tds
