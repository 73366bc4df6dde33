#pragma once

#include <string>

// Compilers have AMX since GCC 11 and clang 12.
#if defined(__x86_64__) && defined(__linux__) && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#define TDS_COMPILES_AMX
#endif

namespace tds {

/** The CPU instructions that our kernels use. A kernel is called only if the CPU has them. */
enum class Instructions {
    /** ggml's kernels compute. */
    NONE,
    /** AVX2 with FMA and F16C, in CPUs since 2013. */
    AVX2,
    /** AVX-512 with VNNI. */
    AVX512,
    /** AVX-512 with VNNI, and AMX for 8 bits, if the operating system permits its tiles. */
    AMX,
};

/** Returns the best instructions of this machine. */
Instructions best_instructions();

/** Returns true if this machine has the instructions. */
bool has_instructions(Instructions instructions);

/** Returns "none", "avx2", "avx512" or "amx". */
const char * instructions_name(Instructions instructions);

/** Finds the instructions of a name; "best" gives the best ones. Returns false for an unknown name. */
bool instructions_of(const std::string & name, Instructions & instructions);

}  // namespace tds
