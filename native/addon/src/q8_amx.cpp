#include <cstring>

#include "q8_block_avx512.hpp"
#include "q8_kernel.hpp"

#if defined(TDS_COMPILES_AMX)
#define TDS_AMX __attribute__((target("f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-int8")))
#define TDS_AMX_INLINE TDS_AMX inline __attribute__((always_inline))
#endif

namespace tds {

namespace q8 {

#if defined(TDS_COMPILES_AMX)

namespace {

/**
 * One instruction multiplies a block of up to 16 columns with a block of a row tile. The scales are applied by AVX-512,
 * whose registers hold the sums of twelve columns of two row tiles. That takes longer than the products.
 */
constexpr size_t COLUMNS = 12;
constexpr size_t ROW_TILES = 2;

/** Bytes of a block of COLUMNS columns: the activations of each column, then a scale for each; to full cache lines. */
constexpr size_t COLUMN_SCALES = COLUMNS * BLOCK;
constexpr size_t COLUMN_BLOCK = round_up(COLUMN_SCALES + COLUMNS * sizeof(float), CACHE_LINE);

/** The tile registers: macros, because the assembler needs their numbers in the text. */
#define TDS_FIRST_PRODUCTS 0
#define TDS_SECOND_PRODUCTS 1
#define TDS_COLUMNS 2
#define TDS_FIRST_ROWS 3
#define TDS_SECOND_ROWS 4

/** The sizes of tile registers, in the layout of the instruction that sets them. */
struct alignas(CACHE_LINE) TileSizes {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};

    constexpr TileSizes() {
        for (size_t tile : {TDS_FIRST_PRODUCTS, TDS_SECOND_PRODUCTS}) set(tile, COLUMNS, ROWS * sizeof(int32_t));
        set(TDS_COLUMNS, COLUMNS, BLOCK);
        for (size_t tile : {TDS_FIRST_ROWS, TDS_SECOND_ROWS}) set(tile, QUADS, ROWS * QUAD);
    }

    constexpr void set(size_t tile, size_t count, size_t bytes) {
        rows[tile] = static_cast<uint8_t>(count);
        row_bytes[tile] = static_cast<uint16_t>(bytes);
    }
};
static_assert(sizeof(TileSizes) == 64, "the instruction reads 64 bytes");
/** In memory, because GCC believes that the instruction reads eight bytes, and would not write the others. */
constexpr TileSizes TILE_SIZES;

TDS_AVX512 void quantize(const float * values, size_t blocks, size_t column, uint8_t * tile) {
    for (size_t i = 0; i < blocks; i++, values += BLOCK, tile += COLUMN_BLOCK) {
        int32_t unused_sum = 0;
        const float scale = quantize_block(values, reinterpret_cast<int8_t *>(tile) + column * BLOCK, unused_sum);
        std::memcpy(tile + COLUMN_SCALES + column * sizeof(float), &scale, sizeof(float));
    }
}

/** The products of a block, which are sums of 32, for each row tile and column. */
using Products = int32_t[ROW_TILES][COLUMNS][ROWS];

/** Loads a block of `Tiles` neighbouring tiles of rows, and of a tile of columns. */
template <size_t Tiles>
TDS_AMX_INLINE void load_block(const uint8_t * rows, size_t tile_stride, const uint8_t * columns) {
    _tile_loadd(TDS_COLUMNS, columns, BLOCK);
    _tile_loadd(TDS_FIRST_ROWS, rows, ROWS * QUAD);
    if (Tiles == 2) _tile_loadd(TDS_SECOND_ROWS, rows + tile_stride, ROWS * QUAD);
}

/** Multiplies the loaded block. */
template <size_t Tiles>
TDS_AMX_INLINE void multiply_block() {
    _tile_zero(TDS_FIRST_PRODUCTS);
    _tile_dpbssd(TDS_FIRST_PRODUCTS, TDS_COLUMNS, TDS_FIRST_ROWS);
    if (Tiles == 2) {
        _tile_zero(TDS_SECOND_PRODUCTS);
        _tile_dpbssd(TDS_SECOND_PRODUCTS, TDS_COLUMNS, TDS_SECOND_ROWS);
    }
}

/** Stores the products of the last multiplied block. */
template <size_t Tiles>
TDS_AMX_INLINE void store_products(Products & products) {
    _tile_stored(TDS_FIRST_PRODUCTS, products[0], ROWS * sizeof(int32_t));
    if (Tiles == 2) _tile_stored(TDS_SECOND_PRODUCTS, products[1], ROWS * sizeof(int32_t));
}

/** Multiplies `Tiles` neighbouring tiles of rows with the first `Count` columns of a tile of columns. */
template <size_t Tiles, size_t Count>
TDS_AMX void multiply_tiles(const uint8_t * rows, const uint8_t * columns, size_t blocks, char * result,
                            size_t stride) {
    const size_t tile_stride = blocks * ROW_BLOCK;
    // A tile's load, product and store each take long. So in one round the products of a block get their scales, the
    // next block's are stored, the one after it is multiplied, and the third is loaded.
    alignas(CACHE_LINE) Products products[2];
    __m512 sums[Tiles][Count];
#pragma GCC unroll 2
    for (size_t t = 0; t < Tiles; t++) {
#pragma GCC unroll 12
        for (size_t c = 0; c < Count; c++) sums[t][c] = _mm512_setzero_ps();
    }
    load_block<Tiles>(rows, tile_stride, columns);
    multiply_block<Tiles>();
    store_products<Tiles>(products[0]);
    if (blocks > 1) {
        load_block<Tiles>(rows + ROW_BLOCK, tile_stride, columns + COLUMN_BLOCK);
        multiply_block<Tiles>();
    }
    if (blocks > 2) load_block<Tiles>(rows + 2 * ROW_BLOCK, tile_stride, columns + 2 * COLUMN_BLOCK);
    for (size_t i = 0; i < blocks; i++, rows += ROW_BLOCK, columns += COLUMN_BLOCK) {
        if (i + 1 < blocks) store_products<Tiles>(products[(i + 1) % 2]);
        if (i + 2 < blocks) multiply_block<Tiles>();
        if (i + 3 < blocks) load_block<Tiles>(rows + 3 * ROW_BLOCK, tile_stride, columns + 3 * COLUMN_BLOCK);
        const Products & block = products[i % 2];
        const auto * scales = reinterpret_cast<const float *>(columns + COLUMN_SCALES);
        __m512 row_scales[Tiles];
#pragma GCC unroll 2
        for (size_t t = 0; t < Tiles; t++) row_scales[t] = _mm512_load_ps(rows + t * tile_stride + ROW_SCALES);
#pragma GCC unroll 12
        for (size_t c = 0; c < Count; c++) {
            const __m512 scale = _mm512_set1_ps(scales[c]);
#pragma GCC unroll 2
            for (size_t t = 0; t < Tiles; t++) {
                sums[t][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(block[t][c])),
                                             _mm512_mul_ps(row_scales[t], scale), sums[t][c]);
            }
        }
    }
#pragma GCC unroll 12
    for (size_t c = 0; c < Count; c++) {
        auto * to = reinterpret_cast<float *>(result + c * stride);
#pragma GCC unroll 2
        for (size_t t = 0; t < Tiles; t++) _mm512_storeu_ps(to + t * ROWS, sums[t][c]);
    }
}

using TileProduct = void (*)(const uint8_t *, const uint8_t *, size_t, char *, size_t);
constexpr TileProduct TILE_PRODUCTS[ROW_TILES][COLUMNS] = {
    {multiply_tiles<1, 1>, multiply_tiles<1, 2>, multiply_tiles<1, 3>, multiply_tiles<1, 4>, multiply_tiles<1, 5>,
     multiply_tiles<1, 6>, multiply_tiles<1, 7>, multiply_tiles<1, 8>, multiply_tiles<1, 9>, multiply_tiles<1, 10>,
     multiply_tiles<1, 11>, multiply_tiles<1, 12>},
    {multiply_tiles<2, 1>, multiply_tiles<2, 2>, multiply_tiles<2, 3>, multiply_tiles<2, 4>, multiply_tiles<2, 5>,
     multiply_tiles<2, 6>, multiply_tiles<2, 7>, multiply_tiles<2, 8>, multiply_tiles<2, 9>, multiply_tiles<2, 10>,
     multiply_tiles<2, 11>, multiply_tiles<2, 12>},
};

void multiply(const uint8_t * rows, size_t row_tiles, const uint8_t * columns, size_t count, size_t blocks,
              char * result, size_t stride) {
    TILE_PRODUCTS[row_tiles - 1][count - 1](rows, columns, blocks, result, stride);
}

TDS_AMX void take_tiles() { _tile_loadconfig(&TILE_SIZES); }

TDS_AMX void leave_tiles() { _tile_release(); }

constexpr Kernel KERNEL = {COLUMNS, 16 * COLUMNS, ROW_TILES, ROW_BLOCK, COLUMN_BLOCK,
                           pack<0>, quantize, multiply, take_tiles, leave_tiles};

}  // namespace

const Kernel * amx_kernel() { return &KERNEL; }

#else

const Kernel * amx_kernel() { return nullptr; }

#endif

}  // namespace q8

}  // namespace tds
