#include "attention.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define TDS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#endif

namespace tds {

namespace attention {

namespace {

/** Floats of a register, and registers of a tile of rows. */
constexpr size_t LANES = 16;
constexpr size_t REGISTERS = ROWS / LANES;
/** Below every score, and finite: the difference of two infinities would be NaN. */
constexpr float LOWEST = -1e30f;
/** Floats of a head: queries and results, then a running maximum and a running sum for each row. */
constexpr size_t PER_HEAD = 2 * SIZE_MAX_OF_HEAD * ROWS + 2 * ROWS;
/** Floats of a tile: keys and values, then a weight for each cell and row. */
constexpr size_t PER_TILE = 2 * SIZE_MAX_OF_HEAD * CELLS + CELLS * ROWS;

size_t row_tiles(const Operands & operands) { return (operands.rows + ROWS - 1) / ROWS; }

}  // namespace

Scratch::Scratch() : numbers_(SHARING_MAX * PER_HEAD + PER_TILE) {}

size_t pieces(const Operands & operands) { return row_tiles(operands) * operands.cache_heads; }

#if defined(__x86_64__)

/** Transposes a square of bits: bit `c` of word `r` becomes bit `r` of word `c`. */
static void transpose(uint64_t (&bits)[64]) {
    uint64_t mask = 0x00000000ffffffffull;
    for (unsigned width = 32; width != 0; width >>= 1, mask ^= mask << width) {
        for (unsigned k = 0; k < 64; k = ((k | width) + 1) & ~width) {
            const uint64_t moved = ((bits[k] >> width) ^ bits[k | width]) & mask;
            bits[k] ^= moved << width;
            bits[k | width] ^= moved;
        }
    }
}

/** e to the power of `x`, which is 0 or less; exactly 1 for 0, and NaN for NaN. */
TDS_AVX512 static inline __m512 exponential(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(-87.0f), x);
    const __m512 whole = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
    __m512 rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(0.693359375f), x);
    rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(-2.12194440e-4f), rest);
    // Cephes' polynomial for expf.
    __m512 sum = _mm512_set1_ps(1.9875691500e-4f);
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(1.3981999507e-3f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(8.3334519073e-3f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(4.1665795894e-2f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(1.6666665459e-1f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(5.0000001201e-1f));
    sum = _mm512_fmadd_ps(sum, _mm512_mul_ps(rest, rest), _mm512_add_ps(rest, _mm512_set1_ps(1.0f)));
    return _mm512_scalef_ps(sum, whole);
}

/**
 * Computes `Count` rows of a product. Row `i` of `result` (ROWS floats) is set to the sum over `k` < `depth` of
 * `factors[i · factor_stride + k · depth_stride]` times row `k` of `rows`; with `Adds` the sum is added to it.
 */
template <size_t Count, bool Adds>
TDS_AVX512 static void multiply(const float * factors, size_t factor_stride, size_t depth_stride, const float * rows,
                                size_t depth, float * result) {
    __m512 sums[Count][REGISTERS];
#pragma GCC unroll 6
    for (size_t i = 0; i < Count; i++) {
#pragma GCC unroll 4
        for (size_t r = 0; r < REGISTERS; r++) {
            sums[i][r] = Adds ? _mm512_loadu_ps(result + i * ROWS + r * LANES) : _mm512_setzero_ps();
        }
    }
    for (size_t k = 0; k < depth; k++) {
        __m512 row[REGISTERS];
#pragma GCC unroll 4
        for (size_t r = 0; r < REGISTERS; r++) row[r] = _mm512_loadu_ps(rows + k * ROWS + r * LANES);
#pragma GCC unroll 6
        for (size_t i = 0; i < Count; i++) {
            const __m512 factor = _mm512_set1_ps(factors[i * factor_stride + k * depth_stride]);
#pragma GCC unroll 4
            for (size_t r = 0; r < REGISTERS; r++) sums[i][r] = _mm512_fmadd_ps(factor, row[r], sums[i][r]);
        }
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < Count; i++) {
#pragma GCC unroll 4
        for (size_t r = 0; r < REGISTERS; r++) _mm512_storeu_ps(result + i * ROWS + r * LANES, sums[i][r]);
    }
}

/** Computes `count` rows of a product, an even number, six at a time where there are as many (see `multiply`). */
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

/** Computes one piece: a tile of rows for all heads that share a head of the cache. */
class Worker {
  public:
    Worker(const Operands & operands, size_t piece, Scratch & scratch)
        : operands_(operands),
          first_row_(piece % row_tiles(operands) * ROWS),
          rows_(std::min(ROWS, operands.rows - first_row_)),
          cache_head_(piece / row_tiles(operands)),
          sharing_(operands.heads / operands.cache_heads),
          numbers_(scratch.numbers_.data()) {}

    TDS_AVX512 void run() {
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

    /** Loads a head's scaled queries; the last row again where the tile has fewer rows. */
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

    /** Sets a bit in `sees[row]` for each cell of the tile that the row sees. Returns whether there is any. */
    TDS_AVX512 bool read_mask(size_t first_cell, uint64_t (&sees)[ROWS]) const {
        constexpr size_t half = CELLS / 2;
        const __m512i hidden = _mm512_set1_epi16(static_cast<short>(0xfc00));
        const size_t cells = std::min(CELLS, operands_.cells - first_cell);
        const uint64_t exist = cells == CELLS ? ~0ull : (1ull << cells) - 1;
        const auto low = static_cast<__mmask32>(exist);
        const auto high = static_cast<__mmask32>(exist >> half);
        uint64_t any = 0;
        for (size_t row = 0; row < ROWS; row++) {
            sees[row] = 0;
            if (row >= rows_) continue;
            const char * from = operands_.mask + (first_row_ + row) * operands_.mask_row_stride + first_cell * 2;
            const __m512i first = _mm512_maskz_loadu_epi16(low, from);
            const __m512i second = _mm512_maskz_loadu_epi16(high, from + half * 2);
            sees[row] = static_cast<uint64_t>(_mm512_mask_cmpneq_epi16_mask(low, first, hidden)) |
                        static_cast<uint64_t>(_mm512_mask_cmpneq_epi16_mask(high, second, hidden)) << half;
            any |= sees[row];
        }
        return any != 0;
    }

    /**
     * Converts a tile's keys or values to floats. Cells that no row sees become zeros: an infinity that an earlier
     * request left there, times a weight of 0, would be NaN.
     */
    TDS_AVX512 void convert(const char * from, size_t stride, size_t tile, const uint64_t (&seen)[ROWS],
                            float * to) const {
        for (size_t cell = 0; cell < CELLS; cell++) {
            if (seen[cell] == 0) {
                std::fill_n(to + cell * size(), size(), 0.0f);
                continue;
            }
            const char * row = from + (tile * CELLS + cell) * stride;
            for (size_t i = 0; i < size(); i += LANES) {
                const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(row + i * 2));
                _mm512_storeu_ps(to + cell * size() + i, _mm512_cvtph_ps(halves));
            }
        }
    }

    /** Adds a tile to a head's results; `seen[cell]` has a bit for each row that sees the cell. */
    TDS_AVX512 void attend(size_t shared, const uint64_t (&seen)[ROWS]) {
        float * scores = weights();
        multiply_all<false>(CELLS, keys(), size(), 1, queries(shared), size(), scores);
        for (size_t r = 0; r < REGISTERS; r++) {
            const auto mask = [&](size_t cell) { return static_cast<__mmask16>(seen[cell] >> r * LANES); };
            const __m512 before = _mm512_loadu_ps(maxima(shared) + r * LANES);
            __m512 maximum = before;
            for (size_t cell = 0; cell < CELLS; cell++) {
                const __m512 score = _mm512_loadu_ps(scores + cell * ROWS + r * LANES);
                maximum = _mm512_mask_max_ps(maximum, mask(cell), maximum, score);
            }
            const __m512 fade = exponential(_mm512_sub_ps(before, maximum));
            __m512 sum = _mm512_mul_ps(_mm512_loadu_ps(sums(shared) + r * LANES), fade);
            for (size_t cell = 0; cell < CELLS; cell++) {
                float * at = scores + cell * ROWS + r * LANES;
                if (mask(cell) == 0) {
                    _mm512_storeu_ps(at, _mm512_setzero_ps());
                    continue;
                }
                const __m512 weight =
                    _mm512_maskz_mov_ps(mask(cell), exponential(_mm512_sub_ps(_mm512_loadu_ps(at), maximum)));
                _mm512_storeu_ps(at, weight);
                sum = _mm512_add_ps(sum, weight);
            }
            _mm512_storeu_ps(maxima(shared) + r * LANES, maximum);
            _mm512_storeu_ps(sums(shared) + r * LANES, sum);
            if (_mm512_cmpneq_ps_mask(before, maximum) == 0) continue;
            for (size_t i = 0; i < size(); i++) {
                float * at = results(shared) + i * ROWS + r * LANES;
                _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), fade));
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

void compute(const Operands & operands, size_t piece, Scratch & scratch) { Worker(operands, piece, scratch).run(); }

#else

void compute(const Operands &, size_t, Scratch &) {}

#endif

}  // namespace attention

}  // namespace tds
