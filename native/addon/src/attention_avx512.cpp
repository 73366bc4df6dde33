#include "attention_kernel.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#define TDS_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define TDS_INLINE TDS_TARGET __attribute__((always_inline)) static inline

#include "attention_worker.hpp"

namespace tds {

namespace attention {

namespace {

/** Registers of AVX-512, of which there are 32. */
struct Avx512Lanes {
    using Floats = __m512;
    using Mask = __mmask16;
    static constexpr size_t COUNT = 16;
    static constexpr size_t REGISTERS_AT_ONCE = 4;

    TDS_INLINE Floats load(const float * from) { return _mm512_loadu_ps(from); }
    TDS_INLINE void store(float * to, Floats value) { _mm512_storeu_ps(to, value); }
    TDS_INLINE Floats broadcast(float number) { return _mm512_set1_ps(number); }
    TDS_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
    TDS_INLINE Floats subtract(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
    TDS_INLINE Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
    TDS_INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
    TDS_INLINE Floats subtract_product(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(b, c, a); }
    /** Returns `b` in lanes where one of them is NaN. */
    TDS_INLINE Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
    TDS_INLINE Floats round(Floats value) { return _mm512_roundscale_ps(value, 0); }
    /** Returns `value` times 2 to the power of `power`, an integer from −126 to 0. */
    TDS_INLINE Floats scale_by_power_of_two(Floats value, Floats power) { return _mm512_scalef_ps(value, power); }

    /** Makes a mask of the lowest COUNT bits, one for each lane. */
    TDS_INLINE Mask mask(uint64_t bits) { return static_cast<Mask>(bits); }
    TDS_INLINE bool any(uint64_t bits) { return static_cast<Mask>(bits) != 0; }
    /** Returns 0 in lanes whose mask bit is not set. */
    TDS_INLINE Floats keep(Mask mask, Floats value) { return _mm512_maskz_mov_ps(mask, value); }
    /** Returns `a` in lanes whose mask bit is not set. */
    TDS_INLINE Floats max_where(Mask mask, Floats a, Floats b) { return _mm512_mask_max_ps(a, mask, a, b); }
    /** Returns true if any lane differs or is NaN. */
    TDS_INLINE bool differ(Floats a, Floats b) { return _mm512_cmpneq_ps_mask(a, b) != 0; }

    /** Converts 16-bit floats. */
    TDS_INLINE Floats from_halves(const char * from) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from)));
    }
    /** Returns a bit for each of the first `cells` 16-bit numbers, at most CELLS, that is not HIDDEN. */
    TDS_INLINE uint64_t seen(const char * from, size_t cells) {
        constexpr size_t half = CELLS / 2;
        const __m512i hidden = _mm512_set1_epi16(static_cast<short>(HIDDEN));
        const uint64_t exist = cells == CELLS ? ~0ull : (1ull << cells) - 1;
        const auto low = static_cast<__mmask32>(exist);
        const auto high = static_cast<__mmask32>(exist >> half);
        const __m512i first = _mm512_maskz_loadu_epi16(low, from);
        const __m512i second = _mm512_maskz_loadu_epi16(high, from + half * 2);
        return static_cast<uint64_t>(_mm512_mask_cmpneq_epi16_mask(low, first, hidden)) |
               static_cast<uint64_t>(_mm512_mask_cmpneq_epi16_mask(high, second, hidden)) << half;
    }
};

}  // namespace

void compute_avx512(const Operands & operands, size_t piece, float * numbers) {
    Worker<Avx512Lanes>(operands, piece, numbers).run();
}

}  // namespace attention

}  // namespace tds

#else

namespace tds {

namespace attention {

void compute_avx512(const Operands &, size_t, float *) {}

}  // namespace attention

}  // namespace tds

#endif
