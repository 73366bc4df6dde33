#include "instructions.hpp"

#if defined(TDS_COMPILES_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tds {

namespace {

constexpr Instructions BEST_FIRST[] = {Instructions::AMX, Instructions::AVX512, Instructions::AVX2, Instructions::NONE};

#if defined(TDS_COMPILES_AMX)
/** Returns true if the CPU has AMX for 8 bits and the kernel permits its tiles, which a process has to ask for once. */
bool has_amx() {
    constexpr unsigned AMX_TILE = 1u << 24, AMX_INT8 = 1u << 25;
    constexpr int REQUEST_PERMISSION = 0x1023, TILE_DATA = 18;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if ((d & AMX_TILE) == 0 || (d & AMX_INT8) == 0) return false;
    static const bool permitted = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
    return permitted;
}
#else
bool has_amx() { return false; }
#endif

}  // namespace

bool has_instructions(Instructions instructions) {
#if defined(__x86_64__)
    switch (instructions) {
        case Instructions::AMX:
            return has_instructions(Instructions::AVX512) && has_amx();
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
        case Instructions::AMX:
            return "amx";
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
