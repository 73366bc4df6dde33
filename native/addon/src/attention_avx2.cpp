#include "attention_kernel.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#define TDS_TARGET __attribute__((target("avx2,fma,f16c")))
#define TDS_INLINE TDS_TARGET __attribute__((always_inline)) static inline

#include "attention_worker.hpp"

namespace tds {

namespace attention {

namespace {

/** Registers of AVX2, of which there are 16. A mask is a register too, with all bits of a lane set or none. */
struct Avx2Lanes {
    using Floats = __m256;
    using Mask = __m256;
    static constexpr size_t COUNT = 8;
    static constexpr size_t REGISTERS_AT_ONCE = 2;

    TDS_INLINE Floats load(const float * from) { return _mm256_loadu_ps(from); }
    TDS_INLINE void store(float * to, Floats value) { _mm256_storeu_ps(to, value); }
    TDS_INLINE Floats broadcast(float number) { return _mm256_set1_ps(number); }
    TDS_INLINE Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
    TDS_INLINE Floats subtract(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
    TDS_INLINE Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
    TDS_INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
    TDS_INLINE Floats subtract_product(Floats a, Floats b, Floats c) { return _mm256_fnmadd_ps(b, c, a); }
    /** Returns `b` in lanes where one of them is NaN. */
    TDS_INLINE Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
    TDS_INLINE Floats round(Floats value) {
        return _mm256_round_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    /** Returns `value` times 2 to the power of `power`, an integer from −126 to 0 that becomes a float's exponent. */
    TDS_INLINE Floats scale_by_power_of_two(Floats value, Floats power) {
        const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(power), _mm256_set1_epi32(127));
        return _mm256_mul_ps(value, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
    }

    /** Makes a mask of the lowest COUNT bits, one for each lane. */
    TDS_INLINE Mask mask(uint64_t bits) {
        const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits & 0xff)), each);
        return _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, each));
    }
    TDS_INLINE bool any(uint64_t bits) { return (bits & 0xff) != 0; }
    /** Returns 0 in lanes whose mask bit is not set. */
    TDS_INLINE Floats keep(Mask mask, Floats value) { return _mm256_and_ps(mask, value); }
    /** Returns `a` in lanes whose mask bit is not set. */
    TDS_INLINE Floats max_where(Mask mask, Floats a, Floats b) { return _mm256_blendv_ps(a, _mm256_max_ps(a, b), mask); }
    /** Returns true if any lane differs or is NaN. */
    TDS_INLINE bool differ(Floats a, Floats b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_NEQ_UQ)) != 0; }

    /** Converts 16-bit floats. */
    TDS_INLINE Floats from_halves(const char * from) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
    }
    /** Returns a bit for each of the first `cells` 16-bit numbers, at most CELLS, that is not HIDDEN. */
    TDS_INLINE uint64_t seen(const char * from, size_t cells) {
        constexpr size_t at_once = 32;
        uint16_t padded[CELLS];
        if (cells < CELLS) {
            std::fill_n(padded, CELLS, HIDDEN);
            std::memcpy(padded, from, cells * sizeof(uint16_t));
            from = reinterpret_cast<const char *>(padded);
        }
        const __m256i hidden = _mm256_set1_epi16(static_cast<short>(HIDDEN));
        uint64_t hides = 0;
        for (size_t cell = 0; cell < CELLS; cell += at_once) {
            const auto * numbers = reinterpret_cast<const __m256i *>(from + cell * 2);
            const __m256i first = _mm256_cmpeq_epi16(_mm256_loadu_si256(numbers), hidden);
            const __m256i second = _mm256_cmpeq_epi16(_mm256_loadu_si256(numbers + 1), hidden);
            // The instruction interleaves the halves of both, so the quarters are put back in order.
            const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(first, second), 0b11'01'10'00);
            hides |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(both))) << cell;
        }
        return ~hides;
    }
};

}  // namespace

void compute_avx2(const Operands & operands, size_t piece, float * numbers) {
    Worker<Avx2Lanes>(operands, piece, numbers).run();
}

}  // namespace attention

}  // namespace tds

#else

namespace tds {

namespace attention {

void compute_avx2(const Operands &, size_t, float *) {}

}  // namespace attention

}  // namespace tds

#endif
