#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tds {

/** A position of a branch after which some tokens' logits are wanted. They go to `offset` in the task's logits. */
struct Read {
    int32_t index = 0;
    std::vector<int32_t> tokens;
    size_t offset = 0;
};

/** Tokens after the prefix, cut after the last read, since later ones change no logit. Reads ascend by index. */
struct Branch {
    std::vector<int32_t> tokens;
    std::vector<Read> reads;
};

struct Plan {
    std::vector<int32_t> prefix;
    /** Only branches that have reads. */
    std::vector<Branch> branches;
    size_t logit_count = 0;
};

/**
 * Reads a plan from its packed form, as `native/evaluators/addon/pack.ts` writes it. First the prefix length, the
 * branch count and the prefix tokens. Then for each branch its token count, read count and tokens; for each read its
 * index, its number of tokens, and the tokens. Checks everything. Returns an empty string, or the error.
 */
std::string unpack_plan(const int32_t * data, size_t size, int32_t vocabulary, int32_t context_tokens, Plan & plan);

}  // namespace tds
