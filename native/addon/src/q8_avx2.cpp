#include <cstring>

#include "q8_kernel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define TDS_AVX2 __attribute__((target("avx2,fma,f16c")))
#define TDS_AVX2_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline
#endif

namespace tds {

namespace q8 {

#if defined(__x86_64__)

namespace {

/** Two registers of sums for each column and four of work are all 16 registers. */
constexpr size_t COLUMNS = 6;
/** One instruction multiplies and adds up two neighbouring weights of a row, in 16 bits. */
constexpr size_t PAIR = 2;
constexpr size_t PAIRS = BLOCK / PAIR;
/** Rows of a register. */
constexpr size_t LANES = 8;
static_assert(ROWS == 2 * LANES, "a pair's rows fill two registers");

/** Bytes of a block of ROWS rows: for each pair and row two weights in 8 bits, then a scale for each row. */
constexpr size_t ROW_SCALES = PAIRS * ROWS * PAIR;
constexpr size_t ROW_BLOCK = ROW_SCALES + ROWS * sizeof(float);
/**
 * Bytes of a block of COLUMNS columns: for each pair and column two activations in 16 bits, because one instruction
 * loads them for all rows only if it need not convert them. Then a scale for each column.
 */
constexpr size_t COLUMN_SCALES = PAIRS * COLUMNS * PAIR * sizeof(int16_t);
constexpr size_t COLUMN_BLOCK = COLUMN_SCALES + COLUMNS * sizeof(float);

void pack(const int8_t (&weights)[BLOCK], float scale, size_t row, uint8_t * block) {
    for (size_t pair = 0; pair < PAIRS; pair++) {
        std::memcpy(block + (pair * ROWS + row) * PAIR, weights + pair * PAIR, PAIR);
    }
    std::memcpy(block + ROW_SCALES + row * sizeof(float), &scale, sizeof(float));
}

/** Returns the largest lane. */
TDS_AVX2 int32_t largest_of(__m256i values) {
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b01'00'11'10));
    return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0b10'11'00'01)));
}

TDS_AVX2 void quantize(const float * values, size_t blocks, size_t column, uint8_t * tile) {
    constexpr size_t registers = BLOCK / LANES;
    const __m256i no_sign = _mm256_set1_epi32(0x7fffffff);
    for (size_t i = 0; i < blocks; i++, values += BLOCK, tile += COLUMN_BLOCK) {
        __m256 numbers[registers];
        // Unsigned bits order as numbers, with NaN the largest. A maximum of floats would lose a NaN.
        __m256i sizes = _mm256_setzero_si256();
        for (size_t r = 0; r < registers; r++) {
            numbers[r] = _mm256_loadu_ps(values + r * LANES);
            sizes = _mm256_max_epi32(sizes, _mm256_and_si256(_mm256_castps_si256(numbers[r]), no_sign));
        }
        const float largest = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(largest_of(sizes))));
        // The scale is rounded as in ggml, so that both kernels start from the same numbers.
        const float scale = _cvtsh_ss(_cvtss_sh(largest / 127.0f, _MM_FROUND_TO_NEAREST_INT));
        const __m256 inverse = _mm256_set1_ps(largest > 0.0f ? 127.0f / largest : 0.0f);
        alignas(32) int16_t rounded[BLOCK];
        for (size_t r = 0; r < registers; r += 2) {
            const __m256i first = _mm256_cvtps_epi32(_mm256_mul_ps(numbers[r], inverse));
            const __m256i second = _mm256_cvtps_epi32(_mm256_mul_ps(numbers[r + 1], inverse));
            // The instruction interleaves the halves of both, so the quarters are put back in order.
            _mm256_store_si256(reinterpret_cast<__m256i *>(rounded + r * LANES),
                               _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0b11'01'10'00));
        }
        for (size_t pair = 0; pair < PAIRS; pair++) {
            std::memcpy(tile + (pair * COLUMNS + column) * PAIR * sizeof(int16_t), rounded + pair * PAIR,
                        PAIR * sizeof(int16_t));
        }
        std::memcpy(tile + COLUMN_SCALES + column * sizeof(float), &scale, sizeof(float));
    }
}

/** Adds the products of one pair of each row and column to `products`. */
template <size_t Count>
TDS_AVX2_INLINE void multiply_pair(const uint8_t * rows, const int32_t * columns, __m256i (&products)[Count][2]) {
    const __m256i low = _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i *>(rows)));
    const __m256i high = _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i *>(rows + 16)));
#pragma GCC unroll 6
    for (size_t c = 0; c < Count; c++) {
        const __m256i activations = _mm256_set1_epi32(columns[c]);
        products[c][0] = _mm256_add_epi32(products[c][0], _mm256_madd_epi16(low, activations));
        products[c][1] = _mm256_add_epi32(products[c][1], _mm256_madd_epi16(high, activations));
        // Without this, compilers add up products of several pairs first, and run out of registers.
        asm("" : "+x"(products[c][0]), "+x"(products[c][1]));
    }
}

/** Multiplies a tile of rows with the first `Count` columns of a tile of columns. */
template <size_t Count>
TDS_AVX2 void multiply_tiles(const uint8_t * rows, const uint8_t * columns, size_t blocks, char * result,
                             size_t stride) {
    __m256 sums[Count][2];
    for (size_t c = 0; c < Count; c++) sums[c][0] = sums[c][1] = _mm256_setzero_ps();
    for (size_t i = 0; i < blocks; i++, rows += ROW_BLOCK, columns += COLUMN_BLOCK) {
        __m256i products[Count][2];
#pragma GCC unroll 6
        for (size_t c = 0; c < Count; c++) products[c][0] = products[c][1] = _mm256_setzero_si256();
        const auto * pairs = reinterpret_cast<const int32_t *>(columns);
#pragma GCC unroll 1
        for (size_t pair = 0; pair < PAIRS; pair++) {
            multiply_pair<Count>(rows + pair * ROWS * PAIR, pairs + pair * COLUMNS, products);
        }
        const auto * row_scales = reinterpret_cast<const float *>(rows + ROW_SCALES);
        const auto * scales = reinterpret_cast<const float *>(columns + COLUMN_SCALES);
#pragma GCC unroll 6
        for (size_t c = 0; c < Count; c++) {
            const __m256 scale = _mm256_set1_ps(scales[c]);
            for (size_t half = 0; half < 2; half++) {
                const __m256 both = _mm256_mul_ps(_mm256_load_ps(row_scales + half * LANES), scale);
                sums[c][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(products[c][half]), both, sums[c][half]);
            }
        }
    }
    for (size_t c = 0; c < Count; c++) {
        auto * to = reinterpret_cast<float *>(result + c * stride);
        _mm256_storeu_ps(to, sums[c][0]);
        _mm256_storeu_ps(to + LANES, sums[c][1]);
    }
}

using TileProduct = void (*)(const uint8_t *, const uint8_t *, size_t, char *, size_t);
constexpr TileProduct TILE_PRODUCTS[COLUMNS] = {
    multiply_tiles<1>, multiply_tiles<2>, multiply_tiles<3>, multiply_tiles<4>, multiply_tiles<5>, multiply_tiles<6>,
};

void multiply(const uint8_t * rows, size_t, const uint8_t * columns, size_t count, size_t blocks, char * result,
              size_t stride) {
    TILE_PRODUCTS[count - 1](rows, columns, blocks, result, stride);
}

constexpr Kernel KERNEL = {COLUMNS, 16 * COLUMNS, 1, ROW_BLOCK, COLUMN_BLOCK, pack, quantize, multiply};

}  // namespace

const Kernel * avx2_kernel() { return &KERNEL; }

#else

const Kernel * avx2_kernel() { return nullptr; }

#endif

}  // namespace q8

}  // namespace tds
