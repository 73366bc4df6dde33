#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "attention_kernel.hpp"

/**
 * The computation of a piece, written once for registers of any width. A file that includes this defines before it
 * TDS_TARGET, the attribute that names its instructions, and gives `Worker` its `Lanes`: the operations on a register.
 * All lanes are computed alike and in the same order, so a result has the same bits in registers of any width.
 */

namespace tds {

namespace attention {

namespace {

/** Transposes a square of bits: bit `c` of word `r` becomes bit `r` of word `c`. */
void transpose(uint64_t (&bits)[64]) {
    uint64_t mask = 0x00000000ffffffffull;
    for (unsigned width = 32; width != 0; width >>= 1, mask ^= mask << width) {
        for (unsigned k = 0; k < 64; k = ((k | width) + 1) & ~width) {
            const uint64_t moved = ((bits[k] >> width) ^ bits[k | width]) & mask;
            bits[k] ^= moved << width;
            bits[k | width] ^= moved;
        }
    }
}

/** Computes one piece: a tile of rows for all heads that share a head of the cache. */
template <typename Lanes>
class Worker {
  public:
    Worker(const Operands & operands, size_t piece, float * numbers)
        : operands_(operands),
          first_row_(piece % row_tiles(operands) * ROWS),
          rows_(std::min(ROWS, operands.rows - first_row_)),
          cache_head_(piece / row_tiles(operands)),
          sharing_(operands.heads / operands.cache_heads),
          numbers_(numbers) {}

    TDS_TARGET void run() {
        const size_t tiles = (operands_.cells + CELLS - 1) / CELLS;
        for (size_t shared = 0; shared < sharing_; shared++) start(shared);
        uint64_t sees[ROWS];
        for (size_t tile = 0; tile < tiles; tile++) {
            if (!read_mask(tile * CELLS, sees)) continue;
            transpose(sees);
            convert(operands_.keys + cache_head_ * operands_.key_head_stride, operands_.key_cell_stride, tile, sees,
                    keys());
            convert(operands_.values + cache_head_ * operands_.value_head_stride, operands_.value_cell_stride, tile,
                    sees, values());
            for (size_t shared = 0; shared < sharing_; shared++) attend(shared, sees);
        }
        for (size_t shared = 0; shared < sharing_; shared++) finish(shared);
    }

  private:
    using Floats = typename Lanes::Floats;
    using Mask = typename Lanes::Mask;
    static constexpr size_t LANES = Lanes::COUNT;
    /** Registers of a tile of rows. */
    static constexpr size_t REGISTERS = ROWS / LANES;

    size_t size() const { return operands_.head_size; }
    /** For each head: queries and results with ROWS floats for each number of the head, then maxima and sums. */
    float * queries(size_t shared) { return numbers_ + shared * PER_HEAD; }
    float * results(size_t shared) { return queries(shared) + SIZE_MAX_OF_HEAD * ROWS; }
    float * maxima(size_t shared) { return results(shared) + SIZE_MAX_OF_HEAD * ROWS; }
    float * sums(size_t shared) { return maxima(shared) + ROWS; }
    /** For each tile: keys and values with a row for each cell, and ROWS weights for each cell. */
    float * keys() { return numbers_ + SHARING_MAX * PER_HEAD; }
    float * values() { return keys() + SIZE_MAX_OF_HEAD * CELLS; }
    float * weights() { return values() + SIZE_MAX_OF_HEAD * CELLS; }

    const char * query(size_t shared, size_t row) const {
        return operands_.queries + (first_row_ + row) * operands_.query_row_stride +
               (cache_head_ * sharing_ + shared) * operands_.query_head_stride;
    }

    /** Loads a head's scaled queries. Missing rows of the last tile repeat the last row. */
    void start(size_t shared) {
        float * to = queries(shared);
        for (size_t row = 0; row < ROWS; row++) {
            const auto * from = reinterpret_cast<const float *>(query(shared, std::min(row, rows_ - 1)));
            for (size_t i = 0; i < size(); i++) to[i * ROWS + row] = from[i] * operands_.scale;
        }
        std::fill_n(results(shared), size() * ROWS, 0.0f);
        std::fill_n(maxima(shared), ROWS, LOWEST);
        std::fill_n(sums(shared), ROWS, 0.0f);
    }

    /** Sets a bit in `sees[row]` for each cell of the tile that the row sees. Returns true if there is any. */
    TDS_TARGET bool read_mask(size_t first_cell, uint64_t (&sees)[ROWS]) const {
        const size_t cells = std::min(CELLS, operands_.cells - first_cell);
        uint64_t any = 0;
        for (size_t row = 0; row < ROWS; row++) {
            sees[row] = 0;
            if (row >= rows_) continue;
            sees[row] =
                Lanes::seen(operands_.mask + (first_row_ + row) * operands_.mask_row_stride + first_cell * 2, cells);
            any |= sees[row];
        }
        return any != 0;
    }

    /**
     * Converts a tile's keys or values to floats. Cells that no row sees become zeros: an infinity that an earlier
     * request left there, times a weight of 0, would be NaN.
     */
    TDS_TARGET void convert(const char * from, size_t stride, size_t tile, const uint64_t (&seen)[ROWS],
                            float * to) const {
        for (size_t cell = 0; cell < CELLS; cell++) {
            if (seen[cell] == 0) {
                std::fill_n(to + cell * size(), size(), 0.0f);
                continue;
            }
            const char * row = from + (tile * CELLS + cell) * stride;
            for (size_t i = 0; i < size(); i += LANES) {
                Lanes::store(to + cell * size() + i, Lanes::from_halves(row + i * 2));
            }
        }
    }

    /** Returns e to the power of `x`, which is at most 0. The result is exactly 1 for 0, and NaN for NaN. */
    TDS_TARGET static Floats exponential(Floats x) {
        x = Lanes::max(Lanes::broadcast(-87.0f), x);
        const Floats whole = Lanes::round(Lanes::multiply(x, Lanes::broadcast(1.44269504f)));
        Floats rest = Lanes::subtract_product(x, whole, Lanes::broadcast(0.693359375f));
        rest = Lanes::subtract_product(rest, whole, Lanes::broadcast(-2.12194440e-4f));
        // Cephes' polynomial for expf.
        Floats sum = Lanes::broadcast(1.9875691500e-4f);
        sum = Lanes::multiply_add(sum, rest, Lanes::broadcast(1.3981999507e-3f));
        sum = Lanes::multiply_add(sum, rest, Lanes::broadcast(8.3334519073e-3f));
        sum = Lanes::multiply_add(sum, rest, Lanes::broadcast(4.1665795894e-2f));
        sum = Lanes::multiply_add(sum, rest, Lanes::broadcast(1.6666665459e-1f));
        sum = Lanes::multiply_add(sum, rest, Lanes::broadcast(5.0000001201e-1f));
        sum = Lanes::multiply_add(sum, Lanes::multiply(rest, rest), Lanes::add(rest, Lanes::broadcast(1.0f)));
        return Lanes::scale_by_power_of_two(sum, whole);
    }

    /**
     * Computes `Count` rows of a product. Row `i` of `result` (ROWS floats) becomes the sum over `k` < `depth` of
     * `factors[i · factor_stride + k · depth_stride]` times row `k` of `rows`. With `Adds` the sum is added to it.
     */
    template <size_t Count, bool Adds>
    TDS_TARGET static void multiply(const float * factors, size_t factor_stride, size_t depth_stride,
                                    const float * rows, size_t depth, float * result) {
        constexpr size_t group = Lanes::REGISTERS_AT_ONCE;
        for (size_t first = 0; first < ROWS; first += group * LANES) {
            Floats sums[Count][group];
#pragma GCC unroll 6
            for (size_t i = 0; i < Count; i++) {
#pragma GCC unroll 4
                for (size_t r = 0; r < group; r++) {
                    sums[i][r] = Adds ? Lanes::load(result + i * ROWS + first + r * LANES) : Lanes::broadcast(0.0f);
                }
            }
            for (size_t k = 0; k < depth; k++) {
                Floats row[group];
#pragma GCC unroll 4
                for (size_t r = 0; r < group; r++) row[r] = Lanes::load(rows + k * ROWS + first + r * LANES);
#pragma GCC unroll 6
                for (size_t i = 0; i < Count; i++) {
                    const Floats factor = Lanes::broadcast(factors[i * factor_stride + k * depth_stride]);
#pragma GCC unroll 4
                    for (size_t r = 0; r < group; r++) sums[i][r] = Lanes::multiply_add(factor, row[r], sums[i][r]);
                }
            }
#pragma GCC unroll 6
            for (size_t i = 0; i < Count; i++) {
#pragma GCC unroll 4
                for (size_t r = 0; r < group; r++) Lanes::store(result + i * ROWS + first + r * LANES, sums[i][r]);
            }
        }
    }

    /** Computes `count` rows of a product, six at a time if possible (see `multiply`). `count` is even. */
    template <bool Adds>
    static void multiply_all(size_t count, const float * factors, size_t factor_stride, size_t depth_stride,
                             const float * rows, size_t depth, float * result) {
        constexpr size_t at_once = 6;
        size_t i = 0;
        for (; i + at_once <= count; i += at_once) {
            multiply<at_once, Adds>(factors + i * factor_stride, factor_stride, depth_stride, rows, depth,
                                    result + i * ROWS);
        }
        for (; i + 2 <= count; i += 2) {
            multiply<2, Adds>(factors + i * factor_stride, factor_stride, depth_stride, rows, depth, result + i * ROWS);
        }
    }

    /** Adds a tile to a head's results; `seen[cell]` has a bit for each row that sees the cell. */
    TDS_TARGET void attend(size_t shared, const uint64_t (&seen)[ROWS]) {
        float * scores = weights();
        multiply_all<false>(CELLS, keys(), size(), 1, queries(shared), size(), scores);
        for (size_t r = 0; r < REGISTERS; r++) {
            const Floats before = Lanes::load(maxima(shared) + r * LANES);
            Floats maximum = before;
            for (size_t cell = 0; cell < CELLS; cell++) {
                const Floats score = Lanes::load(scores + cell * ROWS + r * LANES);
                maximum = Lanes::max_where(Lanes::mask(seen[cell] >> r * LANES), maximum, score);
            }
            const Floats fade = exponential(Lanes::subtract(before, maximum));
            Floats sum = Lanes::multiply(Lanes::load(sums(shared) + r * LANES), fade);
            for (size_t cell = 0; cell < CELLS; cell++) {
                float * at = scores + cell * ROWS + r * LANES;
                if (!Lanes::any(seen[cell] >> r * LANES)) {
                    Lanes::store(at, Lanes::broadcast(0.0f));
                    continue;
                }
                const Floats weight = Lanes::keep(Lanes::mask(seen[cell] >> r * LANES),
                                                  exponential(Lanes::subtract(Lanes::load(at), maximum)));
                Lanes::store(at, weight);
                sum = Lanes::add(sum, weight);
            }
            Lanes::store(maxima(shared) + r * LANES, maximum);
            Lanes::store(sums(shared) + r * LANES, sum);
            if (!Lanes::differ(before, maximum)) continue;
            for (size_t i = 0; i < size(); i++) {
                float * at = results(shared) + i * ROWS + r * LANES;
                Lanes::store(at, Lanes::multiply(Lanes::load(at), fade));
            }
        }
        multiply_all<true>(size(), values(), 1, size(), scores, CELLS, results(shared));
    }

    /** Writes a head's results, divided by the sums of their weights. */
    void finish(size_t shared) {
        const float * from = results(shared);
        for (size_t row = 0; row < rows_; row++) {
            const float sum = sums(shared)[row];
            const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
            auto * to = reinterpret_cast<float *>(operands_.result + (first_row_ + row) * operands_.result_row_stride +
                                                  (cache_head_ * sharing_ + shared) * operands_.result_head_stride);
            for (size_t i = 0; i < size(); i++) to[i] = from[i * ROWS + row] * inverse;
        }
    }

    const Operands & operands_;
    const size_t first_row_;
    const size_t rows_;
    const size_t cache_head_;
    const size_t sharing_;
    float * const numbers_;
};

}  // namespace

}  // namespace attention

}  // namespace tds
