#include <cstring>

#include "q8_block_avx512.hpp"
#include "q8_kernel.hpp"

namespace tds {

namespace q8 {

#if defined(__x86_64__)

namespace {

/**
 * Six columns of two row tiles need eight loads for twelve products. Twelve columns of one tile need thirteen, which
 * take longer than the products, because a core loads one register and starts one product a cycle.
 */
constexpr size_t COLUMNS = 6;
constexpr size_t ROW_TILES = 2;

/** The instruction needs unsigned weights, so this is added to each of them. */
constexpr int32_t OFFSET = 128;

/**
 * Bytes of a block of COLUMNS columns. First four activations for each quad and column, then a scale for each column,
 * then −OFFSET times the sum of each column's activations. Products start with that sum, which cancels the offset.
 */
constexpr size_t COLUMN_SCALES = QUADS * COLUMNS * QUAD;
constexpr size_t COLUMN_SUMS = COLUMN_SCALES + COLUMNS * sizeof(float);
constexpr size_t COLUMN_BLOCK = COLUMN_SUMS + COLUMNS * sizeof(int32_t);

TDS_AVX512 void quantize(const float * values, size_t blocks, size_t column, uint8_t * tile) {
    for (size_t i = 0; i < blocks; i++, values += BLOCK, tile += COLUMN_BLOCK) {
        alignas(CACHE_LINE) int8_t rounded[BLOCK];
        int32_t activations = 0;
        const float scale = quantize_block(values, rounded, activations);
        // The sum is unsigned, because the rounded values of NaN and infinity overflow.
        const uint32_t sum = 0u - static_cast<uint32_t>(OFFSET) * static_cast<uint32_t>(activations);
        for (size_t quad = 0; quad < QUADS; quad++) {
            std::memcpy(tile + (quad * COLUMNS + column) * QUAD, rounded + quad * QUAD, QUAD);
        }
        std::memcpy(tile + COLUMN_SCALES + column * sizeof(float), &scale, sizeof(float));
        std::memcpy(tile + COLUMN_SUMS + column * sizeof(int32_t), &sum, sizeof(int32_t));
    }
}

/** Multiplies `Tiles` neighbouring tiles of rows with the first `Count` columns of a tile of columns. */
template <size_t Tiles, size_t Count>
TDS_AVX512 void multiply_tiles(const uint8_t * rows, const uint8_t * columns, size_t blocks, char * result,
                               size_t stride) {
    const size_t tile_stride = blocks * ROW_BLOCK;
    __m512 sums[Tiles][Count];
#pragma GCC unroll 2
    for (size_t t = 0; t < Tiles; t++) {
#pragma GCC unroll 6
        for (size_t c = 0; c < Count; c++) sums[t][c] = _mm512_setzero_ps();
    }
    for (size_t i = 0; i < blocks; i++, rows += ROW_BLOCK, columns += COLUMN_BLOCK) {
        const auto * quads = reinterpret_cast<const int32_t *>(columns);
        const auto * scales = reinterpret_cast<const float *>(columns + COLUMN_SCALES);
        const auto * starts = reinterpret_cast<const int32_t *>(columns + COLUMN_SUMS);
        __m512i products[Tiles][Count];
#pragma GCC unroll 6
        for (size_t c = 0; c < Count; c++) {
            const __m512i start = _mm512_set1_epi32(starts[c]);
#pragma GCC unroll 2
            for (size_t t = 0; t < Tiles; t++) products[t][c] = start;
        }
#pragma GCC unroll 8
        for (size_t quad = 0; quad < QUADS; quad++) {
            __m512i weights[Tiles];
#pragma GCC unroll 2
            for (size_t t = 0; t < Tiles; t++) {
                weights[t] = _mm512_load_si512(rows + t * tile_stride + quad * ROWS * QUAD);
            }
#pragma GCC unroll 6
            for (size_t c = 0; c < Count; c++) {
                const __m512i activations = _mm512_set1_epi32(quads[quad * COLUMNS + c]);
#pragma GCC unroll 2
                for (size_t t = 0; t < Tiles; t++) {
                    products[t][c] = _mm512_dpbusd_epi32(products[t][c], weights[t], activations);
                }
            }
        }
        __m512 row_scales[Tiles];
#pragma GCC unroll 2
        for (size_t t = 0; t < Tiles; t++) row_scales[t] = _mm512_load_ps(rows + t * tile_stride + ROW_SCALES);
#pragma GCC unroll 6
        for (size_t c = 0; c < Count; c++) {
            const __m512 scale = _mm512_set1_ps(scales[c]);
#pragma GCC unroll 2
            for (size_t t = 0; t < Tiles; t++) {
                sums[t][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products[t][c]), _mm512_mul_ps(row_scales[t], scale),
                                             sums[t][c]);
            }
        }
    }
#pragma GCC unroll 6
    for (size_t c = 0; c < Count; c++) {
        auto * to = reinterpret_cast<float *>(result + c * stride);
#pragma GCC unroll 2
        for (size_t t = 0; t < Tiles; t++) _mm512_storeu_ps(to + t * ROWS, sums[t][c]);
    }
}

using TileProduct = void (*)(const uint8_t *, const uint8_t *, size_t, char *, size_t);
constexpr TileProduct TILE_PRODUCTS[ROW_TILES][COLUMNS] = {
    {multiply_tiles<1, 1>, multiply_tiles<1, 2>, multiply_tiles<1, 3>, multiply_tiles<1, 4>, multiply_tiles<1, 5>,
     multiply_tiles<1, 6>},
    {multiply_tiles<2, 1>, multiply_tiles<2, 2>, multiply_tiles<2, 3>, multiply_tiles<2, 4>, multiply_tiles<2, 5>,
     multiply_tiles<2, 6>},
};

void multiply(const uint8_t * rows, size_t row_tiles, const uint8_t * columns, size_t count, size_t blocks,
              char * result, size_t stride) {
    TILE_PRODUCTS[row_tiles - 1][count - 1](rows, columns, blocks, result, stride);
}

constexpr Kernel KERNEL = {COLUMNS, 32 * COLUMNS, ROW_TILES, ROW_BLOCK, COLUMN_BLOCK, pack<OFFSET>, quantize, multiply};

}  // namespace

const Kernel * avx512_kernel() { return &KERNEL; }

#else

const Kernel * avx512_kernel() { return nullptr; }

#endif

}  // namespace q8

}  // namespace tds
