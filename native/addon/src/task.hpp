#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "plan.hpp"

namespace tds {

enum class Outcome { answered, failed, cancelled };

/** A plan on its way through the evaluator, and its outcome. */
struct Task {
    uint64_t id = 0;
    /** The organization: only its own plans reuse a prefix. */
    std::string scope;
    Plan plan;
    /** Set after a decode failed with several plans in it: evaluated alone, a plan fails by its own fault only. */
    bool alone = false;

    Outcome outcome = Outcome::failed;
    /** Why it failed. */
    std::string message;
    /** One for each wanted token, in the order of the plan's reads. */
    std::vector<float> logits;
};

/** What an evaluator has done since it was opened. Written by the inference thread, read by any. */
struct Counters {
    std::atomic<uint64_t> decodes{0};
    /** Tokens of plans that went through the model; a prefix that is reused is not among them. */
    std::atomic<uint64_t> decoded_tokens{0};
    /** Tokens of padding. */
    std::atomic<uint64_t> filler_tokens{0};
    std::atomic<uint64_t> reused_tokens{0};
    std::atomic<uint64_t> failed_decodes{0};
    /** Bytes of the prefixes that are kept for reuse now. */
    std::atomic<uint64_t> kept_prefix_bytes{0};
};

}  // namespace tds
