#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "plan.hpp"

namespace tds {

enum class Outcome { answered, failed, cancelled };

/** A plan on its way through the engine, and what came of it. */
struct Task {
    uint64_t id = 0;
    /** The organization: a prefix is reused within it only. */
    std::string scope;
    Plan plan;
    /** After a decode failed with others in it: evaluated with nothing beside it, so that the failure is its own. */
    bool alone = false;

    Outcome outcome = Outcome::failed;
    /** Why it failed. */
    std::string message;
    /** In the order of the plan's reads. */
    std::vector<float> logits;
};

/** What the engine has done since it was opened. Written by the inference thread, read by any. */
struct Counters {
    std::atomic<uint64_t> decodes{0};
    /** Tokens of plans that went through the model; a prefix that is reused is not among them. */
    std::atomic<uint64_t> decoded_tokens{0};
    /** Tokens that only fill a batch up to the size from which its kernels do not depend on it. */
    std::atomic<uint64_t> filler_tokens{0};
    std::atomic<uint64_t> reused_tokens{0};
    std::atomic<uint64_t> failed_decodes{0};
    /** Of prefixes that are kept for reuse now. */
    std::atomic<uint64_t> kept_prefix_bytes{0};
};

}  // namespace tds
