#pragma once

#include <string>

namespace tds {

/** The instructions of a CPU that our kernels are written for; a kernel is called only where the CPU has them. */
enum class Instructions {
    /** ggml's kernels compute. */
    NONE,
    /** AVX2 with FMA and F16C, as CPUs have had since 2013. */
    AVX2,
    /** AVX-512 with VNNI. */
    AVX512,
};

/** The best ones that this machine has. */
Instructions best_instructions();

/** Whether this machine has them. */
bool has_instructions(Instructions instructions);

/** "none", "avx2" or "avx512". */
const char * instructions_name(Instructions instructions);

/** The instructions of a name, and the best ones for "best". Returns false for another name. */
bool instructions_of(const std::string & name, Instructions & instructions);

}  // namespace tds
