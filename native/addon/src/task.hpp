#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan.hpp"

namespace tds {

enum class Outcome { answered, failed, cancelled };

/** A plan on its way through the evaluator, and its outcome. */
struct Task {
    uint64_t id = 0;
    /** The organization. Only its own plans reuse a prefix. */
    std::string scope;
    Plan plan;
    /** Set after a decode of several plans failed. Evaluated alone, a plan fails by its own fault only. */
    bool alone = false;

    Outcome outcome = Outcome::failed;
    /** The reason for a failure. */
    std::string message;
    /** One for each wanted token, in the order of the plan's reads. */
    std::vector<float> logits;
};

/**
 * Batches are counted by size: the last size takes everything above 4,096 tokens. `prometheus-metrics.ts` names the
 * bounds.
 */
constexpr size_t BATCH_SIZES = 14;

/** Counters of an evaluator since its opening. The inference thread writes them, and any thread reads them. */
struct Counters {
    std::atomic<uint64_t> decodes{0};
    /** The threads of the last decode. */
    std::atomic<uint64_t> threads{0};
    /** The plans' tokens that went through the model, without reused prefixes. */
    std::atomic<uint64_t> decoded_tokens{0};
    std::atomic<uint64_t> padding_tokens{0};
    std::atomic<uint64_t> reused_tokens{0};
    /** The bytes of the prefixes now kept for reuse. */
    std::atomic<uint64_t> kept_prefix_bytes{0};
    /** Bytes of the KV cells of all decoders, used and free. */
    std::atomic<uint64_t> kv_cache_bytes{0};
    /** Batches of at most 1, 2, 4, … tokens, and more than half of that; padding does not count. */
    std::array<std::atomic<uint64_t>, BATCH_SIZES> batches{};
    /** Tokens of them all: those of plans, and of warm-ups. */
    std::atomic<uint64_t> batched_tokens{0};
};

}  // namespace tds
