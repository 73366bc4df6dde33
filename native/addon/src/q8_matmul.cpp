#include "q8_matmul.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "ggml.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TDS_VNNI __attribute__((target("f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#endif

namespace tds {

namespace q8 {

namespace {

/** A block of ggml's Q8_0. */
struct Block {
    ggml_fp16_t scale;
    int8_t weights[BLOCK];
};
static_assert(sizeof(Block) == 2 + BLOCK, "Q8_0 has no padding");

/** One instruction multiplies and adds up four neighbouring weights of a row. */
constexpr size_t QUAD = 4;
constexpr size_t QUADS = BLOCK / QUAD;

/** The instruction takes weights without a sign: this is added to each of them. */
constexpr int32_t OFFSET = 128;

/** Bytes of a block of ROWS rows: for each quad and row four weights plus OFFSET, then a scale for each row. */
constexpr size_t ROW_BLOCK = QUADS * ROWS * QUAD + ROWS * sizeof(float);
/**
 * Bytes of a block of COLUMNS columns: for each quad and column four activations, then a scale for each column, then
 * −OFFSET times the sum of the column's activations. Products start with that sum, which cancels the offset.
 */
constexpr size_t COLUMN_BLOCK = QUADS * COLUMNS * QUAD + COLUMNS * sizeof(float) + COLUMNS * sizeof(int32_t);
constexpr size_t COLUMN_SCALES = QUADS * COLUMNS * QUAD;
constexpr size_t COLUMN_SUMS = COLUMN_SCALES + COLUMNS * sizeof(float);
/** Column tiles that a row tile is multiplied with before the next row tile: they stay in the level 2 cache. */
constexpr size_t TILES_AT_ONCE = 16;

Bytes allocate(size_t size) {
    constexpr size_t line = 64;
    auto * bytes = static_cast<uint8_t *>(std::aligned_alloc(line, (size + line - 1) / line * line));
    if (!bytes) throw std::bad_alloc();
    return Bytes(bytes);
}

}  // namespace

Weights::Weights(const void * blocks, size_t rows, size_t depth)
    : rows_(rows), depth_(depth), bytes_(allocate(rows / ROWS * (depth / BLOCK) * ROW_BLOCK)) {
    const auto * from = static_cast<const Block *>(blocks);
    const size_t row_blocks = depth / BLOCK;
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < row_blocks; i++) {
            uint8_t * to = bytes_.get() + (row / ROWS * row_blocks + i) * ROW_BLOCK;
            const Block & block = from[row * row_blocks + i];
            for (size_t k = 0; k < BLOCK; k++) {
                to[(k / QUAD * ROWS + row % ROWS) * QUAD + k % QUAD] = static_cast<uint8_t>(block.weights[k] + OFFSET);
            }
            const float scale = ggml_fp16_to_fp32(block.scale);
            std::memcpy(to + QUADS * ROWS * QUAD + row % ROWS * sizeof(float), &scale, sizeof(float));
        }
    }
}

const uint8_t * Weights::tile(size_t tile) const { return bytes_.get() + tile * (depth_ / BLOCK) * ROW_BLOCK; }

void Activations::resize(size_t columns, size_t depth) {
    columns_ = columns;
    depth_ = depth;
    const size_t size = tiles() * (depth / BLOCK) * COLUMN_BLOCK;
    if (size <= capacity_) return;
    bytes_ = allocate(size);
    capacity_ = size;
}

const uint8_t * Activations::tile(size_t tile) const {
    return bytes_.get() + tile * (depth_ / BLOCK) * COLUMN_BLOCK;
}

#if defined(__x86_64__)

bool is_supported() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

TDS_VNNI void Activations::quantize(const float * values, size_t stride, size_t tile) {
    uint8_t * tile_bytes = bytes_.get() + tile * (depth_ / BLOCK) * COLUMN_BLOCK;
    const size_t count = std::min(COLUMNS, columns_ - tile * COLUMNS);
    for (size_t column = 0; column < count; column++) {
        const auto * from = reinterpret_cast<const float *>(reinterpret_cast<const char *>(values) +
                                                            (tile * COLUMNS + column) * stride);
        for (size_t i = 0; i < depth_ / BLOCK; i++, from += BLOCK) {
            uint8_t * to = tile_bytes + i * COLUMN_BLOCK;
            const __m512 low = _mm512_loadu_ps(from);
            const __m512 high = _mm512_loadu_ps(from + 16);
            const float largest = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
            // The scale is rounded as ggml rounds it: both kernels start from the same numbers.
            const float scale = _cvtsh_ss(_cvtss_sh(largest / 127.0f, _MM_FROUND_TO_NEAREST_INT));
            const __m512 inverse = _mm512_set1_ps(largest > 0.0f ? 127.0f / largest : 0.0f);
            const __m512i low_rounded = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
            const __m512i high_rounded = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
            const int32_t sum = -OFFSET * _mm512_reduce_add_epi32(_mm512_add_epi32(low_rounded, high_rounded));
            alignas(32) int8_t rounded[BLOCK];
            _mm_store_si128(reinterpret_cast<__m128i *>(rounded), _mm512_cvtsepi32_epi8(low_rounded));
            _mm_store_si128(reinterpret_cast<__m128i *>(rounded + 16), _mm512_cvtsepi32_epi8(high_rounded));
            for (size_t quad = 0; quad < QUADS; quad++) {
                std::memcpy(to + (quad * COLUMNS + column) * QUAD, rounded + quad * QUAD, QUAD);
            }
            std::memcpy(to + COLUMN_SCALES + column * sizeof(float), &scale, sizeof(float));
            std::memcpy(to + COLUMN_SUMS + column * sizeof(int32_t), &sum, sizeof(int32_t));
        }
    }
}

namespace {

/** Multiplies a tile of rows with the first `Count` columns of a tile of columns. */
template <size_t Count>
TDS_VNNI void multiply_tiles(const uint8_t * rows, const uint8_t * columns, size_t blocks, char * result,
                             size_t stride) {
    __m512 sums[Count];
#pragma GCC unroll 12
    for (size_t c = 0; c < Count; c++) sums[c] = _mm512_setzero_ps();
    for (size_t i = 0; i < blocks; i++, rows += ROW_BLOCK, columns += COLUMN_BLOCK) {
        const auto * quads = reinterpret_cast<const int32_t *>(columns);
        const auto * scales = reinterpret_cast<const float *>(columns + COLUMN_SCALES);
        const auto * starts = reinterpret_cast<const int32_t *>(columns + COLUMN_SUMS);
        __m512i products[Count];
#pragma GCC unroll 12
        for (size_t c = 0; c < Count; c++) products[c] = _mm512_set1_epi32(starts[c]);
#pragma GCC unroll 8
        for (size_t quad = 0; quad < QUADS; quad++) {
            const __m512i weights = _mm512_load_si512(rows + quad * ROWS * QUAD);
#pragma GCC unroll 12
            for (size_t c = 0; c < Count; c++) {
                products[c] = _mm512_dpbusd_epi32(products[c], weights, _mm512_set1_epi32(quads[quad * COLUMNS + c]));
            }
        }
        const __m512 row_scales = _mm512_load_ps(rows + QUADS * ROWS * QUAD);
#pragma GCC unroll 12
        for (size_t c = 0; c < Count; c++) {
            sums[c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products[c]),
                                      _mm512_mul_ps(row_scales, _mm512_set1_ps(scales[c])), sums[c]);
        }
    }
#pragma GCC unroll 12
    for (size_t c = 0; c < Count; c++) {
        _mm512_storeu_ps(reinterpret_cast<float *>(result + c * stride), sums[c]);
    }
}

using TileProduct = void (*)(const uint8_t *, const uint8_t *, size_t, char *, size_t);
constexpr TileProduct TILE_PRODUCTS[COLUMNS] = {
    multiply_tiles<1>, multiply_tiles<2>, multiply_tiles<3>,  multiply_tiles<4>,  multiply_tiles<5>,  multiply_tiles<6>,
    multiply_tiles<7>, multiply_tiles<8>, multiply_tiles<9>, multiply_tiles<10>, multiply_tiles<11>, multiply_tiles<12>,
};

}  // namespace

void multiply(const Weights & weights, size_t first_tile, size_t last_tile, const Activations & activations,
              float * result, size_t stride) {
    const size_t blocks = weights.depth() / BLOCK;
    auto * bytes = reinterpret_cast<char *>(result);
    for (size_t first = 0; first < activations.tiles(); first += TILES_AT_ONCE) {
        const size_t last = std::min(first + TILES_AT_ONCE, activations.tiles());
        for (size_t row_tile = first_tile; row_tile < last_tile; row_tile++) {
            for (size_t tile = first; tile < last; tile++) {
                const size_t count = std::min(COLUMNS, activations.columns() - tile * COLUMNS);
                TILE_PRODUCTS[count - 1](weights.tile(row_tile), activations.tile(tile), blocks,
                                         bytes + tile * COLUMNS * stride + row_tile * ROWS * sizeof(float), stride);
            }
        }
    }
}

#else

bool is_supported() { return false; }
void Activations::quantize(const float *, size_t, size_t) {}
void multiply(const Weights &, size_t, size_t, const Activations &, float *, size_t) {}

#endif

}  // namespace q8

}  // namespace tds
