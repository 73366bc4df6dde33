#include "attention_memory.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#define TDS_TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define TDS_INLINE TDS_TARGET __attribute__((always_inline)) static inline

#include "attention_worker.hpp"

namespace tds {

namespace attention {

namespace {

/** Registers of AVX-512, of which there are 32. */
struct Avx512Lanes {
    using Floats = __m512;
    /** A vector of integers that the compiler keeps in one register, where the general type would be copied. */
    using Integers = int32_t __attribute__((vector_size(64)));
    using Mask = __mmask16;
    static constexpr size_t COUNT = 16;
    static constexpr size_t REGISTERS_AT_ONCE = 4;

    TDS_INLINE Floats load(const float * from) { return _mm512_load_ps(from); }
    TDS_INLINE void store(float * to, Floats value) { _mm512_store_ps(to, value); }
    TDS_INLINE Integers load(const int32_t * from) { return *reinterpret_cast<const Integers *>(from); }
    TDS_INLINE void store(int32_t * to, Integers value) { *reinterpret_cast<Integers *>(to) = value; }
    TDS_INLINE Integers broadcast(int32_t number) { return of(_mm512_set1_epi32(number)); }
    TDS_INLINE Integers no_integers() { return of(_mm512_setzero_si512()); }
    TDS_INLINE Floats broadcast(float number) { return _mm512_set1_ps(number); }
    TDS_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
    TDS_INLINE Floats subtract(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
    TDS_INLINE Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
    TDS_INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
    /** Returns `b` in lanes where one of them is NaN. */
    TDS_INLINE Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
    /** Adds the integer in the lowest bits of `rounded` to the exponent of `value`. */
    TDS_INLINE Floats add_to_exponent(Floats value, Floats rounded) {
        const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(rounded), 23);
        return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(value), exponent));
    }

    /** Adds to each sum the two products of 16-bit integers of its lane. */
    TDS_INLINE Integers add_products(Integers sum, Integers a, Integers b) {
        return of(_mm512_dpwssd_epi32(general(sum), general(a), general(b)));
    }
    TDS_INLINE Floats to_floats(Integers value) { return _mm512_cvtepi32_ps(general(value)); }
    TDS_INLINE Integers to_integers(Floats value) { return of(_mm512_cvtps_epi32(value)); }
    /** Returns pairs of 16-bit integers of the lowest bits. */
    TDS_INLINE Integers pair(Integers low, Integers high) {
        return of(_mm512_mask_blend_epi16(0xaaaaaaaa, general(low), _mm512_slli_epi32(general(high), 16)));
    }

    /** Makes a mask of the lowest COUNT bits, one for each lane. */
    TDS_INLINE Mask mask(uint64_t bits) { return static_cast<Mask>(bits); }
    /** Returns 0 in lanes whose mask bit is not set. */
    TDS_INLINE Floats keep(Mask mask, Floats value) { return _mm512_maskz_mov_ps(mask, value); }
    /** Returns `a` in lanes whose mask bit is not set. */
    TDS_INLINE Floats max_where(Mask mask, Floats a, Floats b) { return _mm512_mask_max_ps(a, mask, a, b); }

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

  private:
    TDS_INLINE Integers of(__m512i value) { return reinterpret_cast<Integers>(value); }
    TDS_INLINE __m512i general(Integers value) { return reinterpret_cast<__m512i>(value); }
};

}  // namespace

void compute_avx512(const Operands & operands, size_t piece, Memory & memory) {
    Worker<Avx512Lanes>(operands, piece, memory).run();
}

}  // namespace attention

}  // namespace tds

#else

namespace tds {

namespace attention {

void compute_avx512(const Operands &, size_t, Memory &) {}

}  // namespace attention

}  // namespace tds

#endif
