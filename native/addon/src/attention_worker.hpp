#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "attention_memory.hpp"
#include "memory.hpp"

/**
 * The computation of a piece, written once for the kinds of x86 registers. A file that includes this defines before it
 * TDS_TARGET, the attribute that names its instructions, and gives `Worker` its `Lanes`: the operations on a register.
 * All lanes are computed alike and in the same order, so a result has the same bits by any of them. Queries, keys and
 * values are converted in registers of AVX2 (`eight`), which all these CPUs have.
 */

namespace tds {

namespace attention {

namespace {

static_assert(ROWS == 64 && CELLS == 64, "what rows see of cells is transposed as a square of 64-bit words");

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

/** Registers of 8 numbers, which convert alike by all instructions. */
namespace eight {

constexpr size_t COUNT = 8;

TDS_TARGET inline __m256 from_halves(const char * from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
}

/** Returns the sum of all lanes. */
TDS_TARGET inline float sum(__m256 lanes) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/**
 * Returns the largest size of a lane, or NaN if there is one, because unsigned bits order as numbers with NaN the
 * largest.
 */
TDS_TARGET inline float largest_size(__m256i sizes) {
    const __m128i four = _mm_max_epu32(_mm256_castsi256_si128(sizes), _mm256_extracti128_si256(sizes, 1));
    const __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0b01'00'11'10));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epu32(two, _mm_shuffle_epi32(two, 0b10'11'00'01))));
}

TDS_TARGET inline __m256i sizes(__m256 numbers) {
    return _mm256_and_si256(_mm256_castps_si256(numbers), _mm256_set1_epi32(0x7fffffff));
}

/** Returns a pair of 16-bit integers in each lane: `low` and `high` times their scale, rounded. */
TDS_TARGET inline __m256i pairs(__m256 low, __m256 low_scale, __m256 high, __m256 high_scale) {
    const __m256i even = _mm256_cvtps_epi32(_mm256_mul_ps(low, low_scale));
    const __m256i odd = _mm256_slli_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(high, high_scale)), 16);
    return _mm256_blend_epi16(even, odd, 0b10101010);
}

}  // namespace eight

/**
 * Computes one piece: a tile of rows for all heads that share a head of the cache.
 *
 * A score is a product of 16-bit integers. Query and key are scaled so that their length is LENGTH, so no sum
 * overflows. A weight becomes an integer of 13 bits (WEIGHT_POWER), a value one of VALUE_BITS. The scale of a cell's
 * values, a power of two, is part of the exponent of the cell's weight. So a row's integers depend on nothing but the
 * cells that it sees, and their sums are exact in any order.
 */
template <typename Lanes>
class Worker {
  public:
    Worker(const Operands & operands, size_t piece, Memory & memory)
        : operands_(operands),
          first_row_(piece % row_tiles(operands) * ROWS),
          rows_(std::min(ROWS, operands.rows - first_row_)),
          cache_head_(piece / row_tiles(operands)),
          sharing_(operands.heads / operands.cache_heads),
          heads_(memory.heads.data()),
          tile_(memory.tile) {}

    TDS_TARGET void run() {
        const size_t tiles = (operands_.cells + CELLS - 1) / CELLS;
        for (size_t shared = 0; shared < sharing_; shared++) start(shared);
        uint64_t sees[ROWS];
        for (size_t tile = 0; tile < tiles; tile++) {
            const Sight sight = read_mask(tile * CELLS, sees);
            if (sight == Sight::NOTHING) continue;
            if (sight == Sight::PARTS) transpose(sees);
            convert_keys(tile, sees);
            convert_values(tile, sees);
            for (size_t shared = 0; shared < sharing_; shared++) {
                sight == Sight::EVERYTHING ? attend<true>(heads_[shared], sees) : attend<false>(heads_[shared], sees);
            }
        }
        for (size_t shared = 0; shared < sharing_; shared++) finish(shared);
    }

  private:
    using Floats = typename Lanes::Floats;
    using Integers = typename Lanes::Integers;
    static constexpr size_t LANES = Lanes::COUNT;

    /** The cells of a tile that the rows see. */
    enum class Sight { NOTHING, PARTS, EVERYTHING };

    size_t size() const { return operands_.head_size; }
    /** Pairs of numbers of a head: number `i` and number `i + half()`. */
    size_t half() const { return operands_.head_size / 2; }

    const char * query(size_t shared, size_t row) const {
        return operands_.queries + (first_row_ + row) * operands_.query_row_stride +
               (cache_head_ * sharing_ + shared) * operands_.query_head_stride;
    }

    /** Loads a head's queries. Missing rows of the last tile repeat the last row. */
    TDS_TARGET void start(size_t shared) {
        Head & head = heads_[shared];
        for (size_t row = 0; row < ROWS; row++) {
            const auto * from = reinterpret_cast<const float *>(query(shared, std::min(row, rows_ - 1)));
            __m256 squares = _mm256_setzero_ps();
            for (size_t i = 0; i < size(); i += eight::COUNT) {
                const __m256 numbers = _mm256_loadu_ps(from + i);
                squares = _mm256_fmadd_ps(numbers, numbers, squares);
            }
            const float length = std::sqrt(eight::sum(squares));
            const __m256 scale = _mm256_set1_ps(length > 0.0f ? LENGTH / length : 0.0f);
            alignas(32) int32_t pairs[eight::COUNT];
            for (size_t i = 0; i < half(); i += eight::COUNT) {
                const __m256 low = _mm256_loadu_ps(from + i);
                const __m256 high = _mm256_loadu_ps(from + half() + i);
                _mm256_store_si256(reinterpret_cast<__m256i *>(pairs), eight::pairs(low, scale, high, scale));
                for (size_t lane = 0; lane < eight::COUNT; lane++) head.queries[(i + lane) * ROWS + row] = pairs[lane];
            }
            head.query_scales[row] = finite_or_nan(length) / LENGTH * (operands_.scale * LOG2_E);
        }
        std::fill_n(head.results, size() * ROWS, 0.0f);
        std::fill_n(head.maxima, ROWS, LOWEST);
        std::fill_n(head.sums, ROWS, 0.0f);
    }

    /** Asks for the next tile's bytes, which are too far apart for the CPU to foresee. */
    static void prefetch_next(const char * from, size_t bytes) { prefetch<1>(from, bytes); }

    /** Sets a bit in `sees[row]` for each cell of the tile that the row sees. Missing rows see what the last one sees. */
    TDS_TARGET Sight read_mask(size_t first_cell, uint64_t (&sees)[ROWS]) const {
        const size_t cells = std::min(CELLS, operands_.cells - first_cell);
        uint64_t any = 0;
        uint64_t all = ~0ull;
        for (size_t row = 0; row < ROWS; row++) {
            const char * mask = operands_.mask + (first_row_ + row) * operands_.mask_row_stride + first_cell * 2;
            if (row < rows_) prefetch_next(mask + CELLS * 2, CELLS * 2);
            sees[row] = row < rows_ ? Lanes::seen(mask, cells) : sees[rows_ - 1];
            any |= sees[row];
            all &= sees[row];
        }
        if (any == 0) return Sight::NOTHING;
        return all == ~0ull ? Sight::EVERYTHING : Sight::PARTS;
    }

    /**
     * Converts a tile's keys. `seen[cell]` is 0 where no row sees the cell. Such cells become zeros, because an earlier
     * request may have left an infinity there, whose scale would be NaN.
     */
    TDS_TARGET void convert_keys(size_t tile, const uint64_t (&seen)[ROWS]) {
        const char * keys = operands_.keys + cache_head_ * operands_.key_head_stride;
        for (size_t cell = 0; cell < CELLS; cell++) {
            int32_t * to = tile_.keys + cell * half();
            tile_.key_scales[cell] = 0.0f;
            if (seen[cell] == 0) {
                std::fill_n(to, half(), 0);
                continue;
            }
            const char * from = keys + (tile * CELLS + cell) * operands_.key_cell_stride;
            prefetch_next(from + CELLS * operands_.key_cell_stride, size() * 2);
            __m256 squares = _mm256_setzero_ps();
            for (size_t i = 0; i < size(); i += eight::COUNT) {
                const __m256 numbers = eight::from_halves(from + i * 2);
                squares = _mm256_fmadd_ps(numbers, numbers, squares);
            }
            const float length = std::sqrt(eight::sum(squares));
            const __m256 scale = _mm256_set1_ps(length > 0.0f ? LENGTH / length : 0.0f);
            for (size_t i = 0; i < half(); i += eight::COUNT) {
                _mm256_store_si256(reinterpret_cast<__m256i *>(to + i),
                                   eight::pairs(eight::from_halves(from + i * 2), scale,
                                                eight::from_halves(from + (half() + i) * 2), scale));
            }
            tile_.key_scales[cell] = finite_or_nan(length) / LENGTH;
        }
    }

    /** Does the same with values, of which two neighbouring cells make a pair. */
    TDS_TARGET void convert_values(size_t tile, const uint64_t (&seen)[ROWS]) {
        const char * values = operands_.values + cache_head_ * operands_.value_head_stride;
        for (size_t cell = 0; cell < CELLS; cell++) {
            const char * from = values + (tile * CELLS + cell) * operands_.value_cell_stride;
            prefetch_next(from + CELLS * operands_.value_cell_stride, size() * 2);
            __m256i sizes = _mm256_setzero_si256();
            for (size_t i = 0; seen[cell] != 0 && i < size(); i += eight::COUNT) {
                sizes = _mm256_max_epu32(sizes, eight::sizes(eight::from_halves(from + i * 2)));
            }
            const float largest = eight::largest_size(sizes);
            // The scale gives the largest value VALUE_BITS bits.
            const int power = power_of_two(std::max(largest, SMALLEST_VALUE)) - VALUE_BITS + 1;
            tile_.value_scales[cell] = std::isfinite(largest) ? two_to_the(-power) : 0.0f;
            tile_.value_powers[cell] = std::isfinite(largest) ? static_cast<float>(power) : NOT_A_NUMBER;
        }
        for (size_t cell = 0; cell < CELLS; cell += 2) {
            const char * even = values + (tile * CELLS + cell) * operands_.value_cell_stride;
            const char * odd = even + operands_.value_cell_stride;
            const __m256 even_scale = _mm256_set1_ps(tile_.value_scales[cell]);
            const __m256 odd_scale = _mm256_set1_ps(tile_.value_scales[cell + 1]);
            int32_t * to = tile_.values + cell / 2 * size();
            for (size_t i = 0; i < size(); i += eight::COUNT) {
                const __m256 low = seen[cell] == 0 ? _mm256_setzero_ps() : eight::from_halves(even + i * 2);
                const __m256 high = seen[cell + 1] == 0 ? _mm256_setzero_ps() : eight::from_halves(odd + i * 2);
                _mm256_store_si256(reinterpret_cast<__m256i *>(to + i), eight::pairs(low, even_scale, high, odd_scale));
            }
        }
    }

    /** A row that sees an infinity or NaN has no result: it becomes NaN, never a wrong number. */
    static float finite_or_nan(float number) { return std::isfinite(number) ? number : NOT_A_NUMBER; }

    /** Returns the largest whole power of two that a normal number has in it. */
    static int power_of_two(float number) {
        uint32_t bits = 0;
        std::memcpy(&bits, &number, sizeof(bits));
        return static_cast<int>(bits >> 23 & 0xff) - 127;
    }

    static float two_to_the(int power) {
        const uint32_t bits = static_cast<uint32_t>(power + 127) << 23;
        float number = 0;
        std::memcpy(&number, &bits, sizeof(number));
        return number;
    }

    /**
     * Returns 2 to the power of `x`, which is at most 127. The result is exactly 1 for 0, and NaN for
     * NaN.
     */
    TDS_TARGET static Floats power(Floats x) {
        // Adding this rounds to an integer, which is then in the lowest bits.
        const Floats rounding = Lanes::broadcast(12582912.0f);
        x = Lanes::max(Lanes::broadcast(-125.0f), x);
        const Floats rounded = Lanes::add(x, rounding);
        const Floats rest = Lanes::subtract(x, Lanes::subtract(rounded, rounding));
        // The best polynomial of this degree: wrong by at most 2 to the power of −18, less than rounding a weight.
        Floats sum = Lanes::broadcast(9.582852944731712e-3f);
        sum = Lanes::multiply_add(sum, rest, Lanes::broadcast(5.5906426161527634e-2f));
        sum = Lanes::multiply_add(sum, rest, Lanes::broadcast(2.4024099111557007e-1f));
        sum = Lanes::multiply_add(sum, rest, Lanes::broadcast(6.931241750717163e-1f));
        sum = Lanes::multiply_add(sum, rest, Lanes::broadcast(1.0f));
        return Lanes::add_to_exponent(sum, rounded);
    }

    /**
     * Computes `Count` rows of a product of pairs. Row `i` (ROWS integers) is the sum over `k` < `depth` of
     * `factors[i · factor_stride + k · depth_stride]` times row `k` of `rows`. Each register of the result goes to
     * `take(i, its first row, the register)`.
     */
    template <size_t Count, typename Take>
    TDS_TARGET __attribute__((always_inline)) static inline void multiply(const int32_t * factors, size_t factor_stride,
                                                                          size_t depth_stride, const int32_t * rows,
                                                                          size_t depth, const Take & take) {
        constexpr size_t group = Lanes::REGISTERS_AT_ONCE;
        for (size_t first = 0; first < ROWS; first += group * LANES) {
            Integers sums[Count][group];
#pragma GCC unroll 6
            for (size_t i = 0; i < Count; i++) {
#pragma GCC unroll 4
                for (size_t r = 0; r < group; r++) sums[i][r] = Lanes::no_integers();
            }
            for (size_t k = 0; k < depth; k++) {
                Integers row[group];
#pragma GCC unroll 4
                for (size_t r = 0; r < group; r++) row[r] = Lanes::load(rows + k * ROWS + first + r * LANES);
#pragma GCC unroll 6
                for (size_t i = 0; i < Count; i++) {
                    const Integers factor = Lanes::broadcast(factors[i * factor_stride + k * depth_stride]);
#pragma GCC unroll 4
                    for (size_t r = 0; r < group; r++) sums[i][r] = Lanes::add_products(sums[i][r], factor, row[r]);
                }
            }
#pragma GCC unroll 6
            for (size_t i = 0; i < Count; i++) {
#pragma GCC unroll 4
                for (size_t r = 0; r < group; r++) take(i, first + r * LANES, sums[i][r]);
            }
        }
    }

    /** Scores the cells of a tile from `first` on. The lanes of `scores` are exponents of two. */
    template <size_t Count>
    TDS_TARGET void score(const Head & head, size_t first) {
        multiply<Count>(tile_.keys + first * half(), half(), 1, head.queries, half(),
                        [&](size_t i, size_t row, Integers products) TDS_TARGET __attribute__((always_inline)) {
                            const Floats scale = Lanes::multiply(Lanes::load(head.query_scales + row),
                                                                 Lanes::broadcast(tile_.key_scales[first + i]));
                            Lanes::store(tile_.scores + (first + i) * ROWS + row,
                                         Lanes::multiply_add(Lanes::to_floats(products), scale,
                                                             Lanes::broadcast(tile_.value_powers[first + i])));
                        });
    }

    /** Adds the weighted values of a tile to a head's results, from number `first` of the head on. */
    template <size_t Count>
    TDS_TARGET void add_values(Head & head, size_t first) {
        multiply<Count>(tile_.values + first, 1, size(), tile_.weights, CELLS / 2,
                        [&](size_t i, size_t row, Integers products) TDS_TARGET __attribute__((always_inline)) {
                            float * at = head.results + (first + i) * ROWS + row;
                            const Floats faded = Lanes::multiply(Lanes::load(at), Lanes::load(tile_.fades + row));
                            Lanes::store(at, Lanes::multiply_add(Lanes::to_floats(products),
                                                                 Lanes::load(tile_.gains + row), faded));
                        });
    }

    /** Adds a tile to a head's results; `seen[cell]` has a bit for each row that sees the cell, unless all see all. */
    template <bool Everything>
    TDS_TARGET void attend(Head & head, const uint64_t (&seen)[ROWS]) {
        constexpr size_t at_once = 6;
        size_t cell = 0;
        for (; cell + at_once <= CELLS; cell += at_once) score<at_once>(head, cell);
        for (; cell < CELLS; cell += 4) score<4>(head, cell);
        for (size_t row = 0; row < ROWS; row += LANES) weigh<Everything>(head, row, seen);
        size_t number = 0;
        for (; number + at_once <= size(); number += at_once) add_values<at_once>(head, number);
        for (; number + 4 <= size(); number += 4) add_values<4>(head, number);
        for (; number < size(); number += 2) add_values<2>(head, number);
    }

    /** Turns scores into weights, for one register of rows from `row` on. */
    template <bool Everything>
    TDS_TARGET void weigh(Head & head, size_t row, const uint64_t (&seen)[ROWS]) {
        Floats maximum = Lanes::broadcast(LOWEST);
        for (size_t cell = 0; cell < CELLS; cell++) {
            const Floats score = Lanes::load(tile_.scores + cell * ROWS + row);
            maximum = Everything ? Lanes::max(maximum, score)
                                 : Lanes::max_where(Lanes::mask(seen[cell] >> row), maximum, score);
        }
        // The largest weight of a tile becomes 2 to the power of WEIGHT_POWER.
        const Floats base = Lanes::subtract(maximum, Lanes::broadcast(WEIGHT_POWER));
        Floats sum = Lanes::broadcast(0.0f);
        for (size_t cell = 0; cell < CELLS; cell += 2) {
            Integers pair[2];
#pragma GCC unroll 2
            for (size_t i = 0; i < 2; i++) {
                Floats weight =
                    power(Lanes::subtract(Lanes::load(tile_.scores + (cell + i) * ROWS + row), base));
                if (!Everything) weight = Lanes::keep(Lanes::mask(seen[cell + i] >> row), weight);
                sum = Lanes::multiply_add(weight, Lanes::broadcast(tile_.value_scales[cell + i]), sum);
                pair[i] = Lanes::to_integers(weight);
            }
            Lanes::store(tile_.weights + cell / 2 * ROWS + row, Lanes::pair(pair[0], pair[1]));
        }
        const Floats before = Lanes::load(head.maxima + row);
        const Floats after = Lanes::max(before, maximum);
        const Floats fade = power(Lanes::subtract(before, after));
        const Floats gain = power(Lanes::subtract(maximum, after));
        Lanes::store(tile_.fades + row, fade);
        Lanes::store(tile_.gains + row, gain);
        Lanes::store(head.maxima + row, after);
        Lanes::store(head.sums + row,
                     Lanes::multiply_add(sum, gain, Lanes::multiply(Lanes::load(head.sums + row), fade)));
    }

    /** Writes a head's results, divided by the sums of their weights. */
    void finish(size_t shared) {
        const Head & head = heads_[shared];
        for (size_t row = 0; row < rows_; row++) {
            auto * to = reinterpret_cast<float *>(operands_.result +
                                                  (first_row_ + row) * operands_.result_row_stride +
                                                  (cache_head_ * sharing_ + shared) * operands_.result_head_stride);
            const float inverse = head.sums[row] == 0.0f ? 0.0f : 1.0f / head.sums[row];
            for (size_t i = 0; i < size(); i++) to[i] = head.results[i * ROWS + row] * inverse;
        }
    }

    const Operands & operands_;
    const size_t first_row_;
    const size_t rows_;
    const size_t cache_head_;
    const size_t sharing_;
    Head * const heads_;
    Tile & tile_;
};

}  // namespace

}  // namespace attention

}  // namespace tds
