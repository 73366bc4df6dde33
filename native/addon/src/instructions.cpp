#include "instructions.hpp"

namespace tds {

namespace {

constexpr Instructions BEST_FIRST[] = {Instructions::AVX512, Instructions::AVX2, Instructions::NONE};

}  // namespace

bool has_instructions(Instructions instructions) {
#if defined(__x86_64__)
    switch (instructions) {
        case Instructions::AVX512:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512vnni");
        case Instructions::AVX2:
            // Every CPU with AVX2 also has F16C, for which not every compiler has a check.
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        case Instructions::NONE:
            return true;
    }
#endif
    return instructions == Instructions::NONE;
}

Instructions best_instructions() {
    for (Instructions instructions : BEST_FIRST) {
        if (has_instructions(instructions)) return instructions;
    }
    return Instructions::NONE;
}

const char * instructions_name(Instructions instructions) {
    switch (instructions) {
        case Instructions::AVX512:
            return "avx512";
        case Instructions::AVX2:
            return "avx2";
        case Instructions::NONE:
            break;
    }
    return "none";
}

bool instructions_of(const std::string & name, Instructions & instructions) {
    if (name == "best") {
        instructions = best_instructions();
        return true;
    }
    for (Instructions known : BEST_FIRST) {
        if (name != instructions_name(known)) continue;
        instructions = known;
        return true;
    }
    return false;
}

}  // namespace tds
