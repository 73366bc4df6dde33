#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends.hpp"
#include "decoder.hpp"
#include "instructions.hpp"
#include "kernel_backend.hpp"
#include "llama.h"
#include "output_matrix.hpp"
#include "prefix_cache.hpp"
#include "task.hpp"
#include "thread_pool.hpp"

namespace tds {

struct ModelOptions {
    BackendOptions backends;
    /** A GGUF file, or the first part of a split one. */
    std::string model_path;
    /** Whether loading fails where there is no GPU. */
    bool require_gpu = false;
    int threads = 1;
    int32_t context_tokens = 0;
    /** Bytes of prefixes that are kept for reuse. */
    size_t prefix_cache_bytes = 0;
    /** Whether plans are taken into one decode until it is full; otherwise only until it is large enough. */
    bool full_decodes = false;
    /** One plan at a time, one branch a decode. */
    bool deterministic = false;
    /** What our own kernels compute with on a CPU. The machine has them. */
    Instructions kernels = best_instructions();
    /** Token ids that make a decode fail, and what is read of it, for tests; -1 for none. */
    int32_t fault_token = -1;
    int32_t read_fault_token = -1;
};

/** What is known once the model is loaded; `error` is empty then. */
struct ModelFacts {
    std::string error;
    /** ggml's name of the device that computes, "CPU" without one. */
    std::string device;
    /** Why a GPU that was wanted is not used; empty when it is, or when none was wanted. */
    std::string missing_gpu;
    int32_t context_tokens = 0;
    int32_t vocabulary = 0;
    /** What a plan may need in the decoder of small plans; larger plans go to the other one. */
    PlanLimits small_plans;
    /** Tokens of plans that keep a decoder busy: two decodes where they are filled, else a plan and one behind it. */
    uint32_t decoder_tokens = 0;
};

/**
 * A model in memory with its decoders: one for small plans, and one for large plans where the context is longer than
 * those may be. Made, used and destroyed by the inference thread; `decoder_of` by any.
 */
class LoadedModel {
  public:
    /**
     * Loads the model and fills in `facts`. To be called with the backends' mutex held. `counters` and `closing` must
     * outlive this. Throws std::exception when the model cannot be used; then `facts` has `missing_gpu` at most.
     */
    LoadedModel(const ModelOptions & options, Counters & counters, const std::atomic<bool> & closing,
                ModelFacts & facts);
    ~LoadedModel();
    LoadedModel(const LoadedModel &) = delete;
    LoadedModel & operator=(const LoadedModel &) = delete;

    size_t decoder_count() const { return decoders_.size(); }
    Decoder & decoder(size_t index) { return *decoders_[index]; }
    /** The first decoder that the plan fits in; the last one where it fits in none. Any thread. */
    size_t decoder_of(const Plan & plan) const;

  private:
    using Model = std::unique_ptr<llama_model, void (*)(llama_model *)>;

    static ggml_backend_dev_t choose_gpu(const ModelOptions & options, ModelFacts & facts);
    static Model load(const ModelOptions & options, ggml_backend_dev_t gpu);
    void create_decoders(const ModelOptions & options, const DecoderShared & shared);

    // In this order, because each is used by those after it until they are destroyed.
    ggml_backend_dev_t gpu_;
    Model model_;
    ThreadPool threads_;
    OutputMatrix output_matrix_;
    PrefixCache prefixes_;
    /** Null on a GPU, and where the CPU lacks the instructions. */
    std::unique_ptr<KernelBackend> kernels_;
    std::vector<std::unique_ptr<Decoder>> decoders_;
};

}  // namespace tds
