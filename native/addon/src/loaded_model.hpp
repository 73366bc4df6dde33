#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends.hpp"
#include "compute_threads.hpp"
#include "decoder.hpp"
#include "instructions.hpp"
#include "kernel_backend.hpp"
#include "llama.h"
#include "output_matrix.hpp"
#include "prefix_cache.hpp"
#include "task.hpp"

namespace tds {

struct ModelOptions {
    BackendOptions backends;
    /** A GGUF file, or the first part of a split one. */
    std::string model_path;
    /** True if loading fails without a GPU. */
    bool require_gpu = false;
    ThreadOptions threads;
    int32_t context_tokens = 0;
    /** Bytes of prefixes that are kept for reuse. */
    size_t prefix_cache_bytes = 0;
    /** True to fill each decode with plans; otherwise it is only made large enough. */
    bool full_decodes = false;
    /** One plan at a time, one branch a decode. */
    bool deterministic = false;
    /** The instructions of our kernels on a CPU. The machine has them. */
    Instructions kernels = best_instructions();
    /** Token ids that make a decode, or a read, fail, for tests; −1 for none. */
    int32_t fault_token = -1;
    int32_t read_fault_token = -1;
};

/** The facts of a loaded model. `error` is empty on success. */
struct ModelFacts {
    std::string error;
    /** ggml's name of the computing device; "CPU" without a GPU. */
    std::string device;
    /** The reason for a wanted GPU that is not used; empty otherwise. */
    std::string missing_gpu;
    int32_t context_tokens = 0;
    int32_t vocabulary = 0;
    /** The tokens of plans that keep a decoder busy: two decodes if they are filled, else one plan and the next. */
    uint32_t decoder_tokens = 0;
};

/**
 * A model in memory with its decoders: one for small plans, and one for large plans if the context allows any. The
 * inference thread creates, uses and destroys it. Any thread may call `decoder_of`.
 */
class LoadedModel {
  public:
    /**
     * Loads the model and fills in `facts`. The caller holds the backends' mutex. `counters` and `closing` must outlive
     * this. Throws std::exception when the model cannot be used; then `facts` has `missing_gpu` at most.
     */
    LoadedModel(const ModelOptions & options, Counters & counters, const std::atomic<bool> & closing,
                ModelFacts & facts);
    ~LoadedModel();
    LoadedModel(const LoadedModel &) = delete;
    LoadedModel & operator=(const LoadedModel &) = delete;

    const std::vector<std::unique_ptr<Decoder>> & decoders() const { return decoders_; }
    /** Returns the index of the first decoder that the plan fits, or of the last one. Any thread. */
    size_t decoder_of(const Plan & plan) const;

  private:
    using Model = std::unique_ptr<llama_model, void (*)(llama_model *)>;

    static ggml_backend_dev_t choose_gpu(const ModelOptions & options, ModelFacts & facts);
    static Model load(const ModelOptions & options, ggml_backend_dev_t gpu);
    void create_decoders(const ModelOptions & options, const DecoderShared & shared);

    // The order matters: each is used by those after it until they are destroyed.
    ggml_backend_dev_t gpu_;
    Model model_;
    ComputeThreads threads_;
    OutputMatrix output_matrix_;
    PrefixCache prefixes_;
    /** Null on a GPU, and if the CPU lacks the instructions. */
    std::unique_ptr<KernelBackend> kernels_;
    std::vector<std::unique_ptr<Decoder>> decoders_;
};

}  // namespace tds
