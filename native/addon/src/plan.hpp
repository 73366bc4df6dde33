#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tds {

/** A place in a branch where logits are wanted. `offset` is where they go in the plan's flat result. */
struct Read {
    int32_t index = 0;
    std::vector<int32_t> tokens;
    size_t offset = 0;
};

/** Tokens over the prefix, cut after the last read: what follows it changes nothing. Reads ascend by index. */
struct Branch {
    std::vector<int32_t> tokens;
    std::vector<Read> reads;
};

struct Plan {
    std::vector<int32_t> prefix;
    /** Only branches that are read. */
    std::vector<Branch> branches;
    size_t logit_count = 0;
};

/**
 * Reads a plan from its packed form, as the JavaScript side writes it:
 * prefix length, branch count, prefix tokens, then per branch: token count, read count, tokens, and per read: index,
 * wanted count, wanted token ids. Nothing in it is trusted. Returns an empty string, or what is wrong.
 */
std::string unpack_plan(const int32_t * data, size_t size, int32_t vocabulary, int32_t context_tokens, Plan & plan);

}  // namespace tds
