#include "attention_memory.hpp"

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
    /** A vector of integers that the compiler keeps in one register, where the general type would be copied. */
    using Integers = int32_t __attribute__((vector_size(32)));
    using Mask = __m256;
    static constexpr size_t COUNT = 8;
    static constexpr size_t REGISTERS_AT_ONCE = 2;

    TDS_INLINE Floats load(const float * from) { return _mm256_load_ps(from); }
    TDS_INLINE void store(float * to, Floats value) { _mm256_store_ps(to, value); }
    TDS_INLINE Integers load(const int32_t * from) { return *reinterpret_cast<const Integers *>(from); }
    TDS_INLINE void store(int32_t * to, Integers value) { *reinterpret_cast<Integers *>(to) = value; }
    TDS_INLINE Integers broadcast(int32_t number) { return of(_mm256_set1_epi32(number)); }
    TDS_INLINE Integers no_integers() { return of(_mm256_setzero_si256()); }
    TDS_INLINE Floats broadcast(float number) { return _mm256_set1_ps(number); }
    TDS_INLINE Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
    TDS_INLINE Floats subtract(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
    TDS_INLINE Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
    TDS_INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
    /** Returns `b` in lanes where one of them is NaN. */
    TDS_INLINE Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
    /** Adds the integer in the lowest bits of `rounded` to the exponent of `value`. */
    TDS_INLINE Floats add_to_exponent(Floats value, Floats rounded) {
        const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(rounded), 23);
        return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(value), exponent));
    }

    /** Adds to each sum the two products of 16-bit integers of its lane. */
    TDS_INLINE Integers add_products(Integers sum, Integers a, Integers b) {
        return of(_mm256_add_epi32(general(sum), _mm256_madd_epi16(general(a), general(b))));
    }
    TDS_INLINE Floats to_floats(Integers value) { return _mm256_cvtepi32_ps(general(value)); }
    TDS_INLINE Integers to_integers(Floats value) { return of(_mm256_cvtps_epi32(value)); }
    /** Returns pairs of 16-bit integers of the lowest bits. */
    TDS_INLINE Integers pair(Integers low, Integers high) {
        return of(_mm256_blend_epi16(general(low), _mm256_slli_epi32(general(high), 16), 0b10101010));
    }

    /** Makes a mask of the lowest COUNT bits, one for each lane. */
    TDS_INLINE Mask mask(uint64_t bits) {
        const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits & 0xff)), each);
        return _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, each));
    }
    /** Returns 0 in lanes whose mask bit is not set. */
    TDS_INLINE Floats keep(Mask mask, Floats value) { return _mm256_and_ps(mask, value); }
    /** Returns `a` in lanes whose mask bit is not set. */
    TDS_INLINE Floats max_where(Mask mask, Floats a, Floats b) { return _mm256_blendv_ps(a, _mm256_max_ps(a, b), mask); }

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

  private:
    TDS_INLINE Integers of(__m256i value) { return reinterpret_cast<Integers>(value); }
    TDS_INLINE __m256i general(Integers value) { return reinterpret_cast<__m256i>(value); }
};

}  // namespace

void compute_avx2(const Operands & operands, size_t piece, Memory & memory) {
    Worker<Avx2Lanes>(operands, piece, memory).run();
}

}  // namespace attention

}  // namespace tds

#else

namespace tds {

namespace attention {

void compute_avx2(const Operands &, size_t, Memory &) {}

}  // namespace attention

}  // namespace tds

#endif
