#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "q8_matmul.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define TDS_AVX512 __attribute__((target("f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

namespace tds {

namespace q8 {

/** One instruction multiplies and adds up four neighbouring weights of a row. */
constexpr size_t QUAD = 4;
constexpr size_t QUADS = BLOCK / QUAD;
static_assert(ROWS == 16, "a register has a lane for each row");

/** Bytes of a block of ROWS rows: for each quad and row four weights, then a scale for each row. */
constexpr size_t ROW_SCALES = QUADS * ROWS * QUAD;
constexpr size_t ROW_BLOCK = ROW_SCALES + ROWS * sizeof(float);

/** Packs a row's weights of a block, each plus `Offset`. */
template <int32_t Offset>
void pack(const int8_t (&weights)[BLOCK], float scale, size_t row, uint8_t * block) {
    for (size_t k = 0; k < BLOCK; k++) {
        block[(k / QUAD * ROWS + row) * QUAD + k % QUAD] = static_cast<uint8_t>(weights[k] + Offset);
    }
    std::memcpy(block + ROW_SCALES + row * sizeof(float), &scale, sizeof(float));
}

/**
 * Returns the largest absolute value, or NaN if there is one, because unsigned bits order as numbers with NaN the
 * largest. A maximum of floats would lose a NaN, and the product would be finite.
 */
TDS_AVX512 inline float largest_size(__m512 low, __m512 high) {
    const __m512i low_sizes = _mm512_castps_si512(_mm512_abs_ps(low));
    const __m512i sizes = _mm512_max_epi32(low_sizes, _mm512_castps_si512(_mm512_abs_ps(high)));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(_mm512_reduce_max_epi32(sizes))));
}

/** Quantizes a block of a column. Returns its scale, and in `sum` the sum of the rounded values. */
TDS_AVX512 inline float quantize_block(const float * values, int8_t * rounded, int32_t & sum) {
    const __m512 low = _mm512_loadu_ps(values);
    const __m512 high = _mm512_loadu_ps(values + 16);
    const float largest = largest_size(low, high);
    const __m512 inverse = _mm512_set1_ps(largest > 0.0f ? 127.0f / largest : 0.0f);
    const __m512i low_rounded = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
    const __m512i high_rounded = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
    sum = _mm512_reduce_add_epi32(_mm512_add_epi32(low_rounded, high_rounded));
    auto * to = reinterpret_cast<__m128i *>(rounded);
    _mm_storeu_si128(to, _mm512_cvtsepi32_epi8(low_rounded));
    _mm_storeu_si128(to + 1, _mm512_cvtsepi32_epi8(high_rounded));
    // The scale is rounded as in ggml, so that both kernels start from the same numbers.
    return _cvtsh_ss(_cvtss_sh(largest / 127.0f, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace q8

}  // namespace tds

#endif
