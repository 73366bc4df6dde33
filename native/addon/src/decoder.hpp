#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "batch_composer.hpp"
#include "compute_threads.hpp"
#include "decode_batch.hpp"
#include "kernel_backend.hpp"
#include "kv_cells.hpp"
#include "llama.h"
#include "prefix_cache.hpp"
#include "readout.hpp"
#include "task.hpp"

namespace tds {

struct DecoderOptions {
    /** Cells of the KV cache. */
    uint32_t cells = 0;
    /** Cells that one plan may need. */
    uint32_t plan_cells = UINT32_MAX;
    /** Tokens of one decode. */
    uint32_t batch_tokens = 0;
    /** Another plan is started while fewer tokens than these wait to be decoded. */
    uint32_t fill_tokens = 0;
    /** As in `KvCellsOptions`. */
    bool aligned = false;
    /** One plan at a time, and one branch a decode: no decode depends on anything but its own prefix and branch. */
    bool separate = false;
    /** A token id that makes a decode fail, for tests; −1 for none. */
    int32_t fault_token = -1;
    /** A token id whose logit cannot be read, for tests; -1 for none. */
    int32_t read_fault_token = -1;
};

/** The state that a model's decoders share. */
struct DecoderShared {
    llama_model * model = nullptr;
    OutputMatrix * output_matrix = nullptr;
    /** Null where ggml computes everything. */
    KernelBackend * kernels = nullptr;
    PrefixCache * prefixes = nullptr;
    Counters * counters = nullptr;
    /** Set when the evaluator closes, so that a running decode stops soon. */
    const std::atomic<bool> * closing = nullptr;
    ComputeThreads * threads = nullptr;
    bool on_gpu = false;
};

/** Plans that a decoder has given back. */
struct Returned {
    /** Answered or finally failed plans. */
    std::vector<std::unique_ptr<Task>> finished;
    /** Plans that failed in a decode with others. Each can be started again, and is then evaluated alone. */
    std::vector<std::unique_ptr<Task>> interrupted;
};

/**
 * One llama_context with one unified KV cache, and the plans that are being evaluated in it. Used by the inference
 * thread alone.
 */
class Decoder {
  public:
    /** Throws std::runtime_error when the context cannot be created. */
    Decoder(const DecoderShared & shared, const DecoderOptions & options);
    Decoder(const Decoder &) = delete;
    Decoder & operator=(const Decoder &) = delete;

    bool idle() const { return plans_.empty(); }
    /** As `Readout::device`. */
    ggml_backend_dev_t device() const { return readout_.device(); }
    /** Bytes of its KV cells. */
    size_t cache_bytes() const { return cells_.bytes(); }
    /** Returns true if the plan fits an empty cache. Any thread. */
    bool fits(const Plan & plan) const { return cells_.fits(plan); }
    /** Returns true if another plan is wanted and this one has room now. */
    bool can_start(const Task & task) const;
    /**
     * Returns true if a running plan of the same scope is reading the plan's whole prefix, which will be kept. The rest
     * of that reading takes less than another one of its own, so the plan is not to be started yet.
     */
    bool is_reading_prefix_of(const Task & task) const;
    /**
     * Takes the plan. Throws std::exception when the cache fails or memory is short. Then the plan must be withdrawn,
     * unless `task` still has it.
     */
    void start(std::unique_ptr<Task> & task);
    /** Removes the plan, if it is here, and returns its task. */
    std::unique_ptr<Task> withdraw(uint64_t id);
    /** Removes all plans, and returns their tasks. */
    std::vector<std::unique_ptr<Task>> withdraw_all();

    /** Runs one decode. Returns the plans that it completed, or all plans when it failed (see `abandon`). */
    Returned step();
    /** Removes all plans because of a fault of one of them. A plan that was alone has finally failed. */
    Returned abandon(const std::string & fault);

  private:
    using Context = std::unique_ptr<llama_context, void (*)(llama_context *)>;

    static bool on_abort(void * decoder);
    Context create_context();
    void warm_up();
    void restore_prefix(RunningPlan & plan);
    void keep_prefix(const RunningPlan & plan);
    void start_wave(RunningPlan & plan);
    void finish(RunningPlan & plan);
    /** Decodes the batch and reads its logits. Always empties the batch. */
    bool decode();
    /** Computes the batch on the threads that are to be had. */
    bool compute();
    void count_batch() const;
    void check_faults() const;
    /** Composes a batch, decodes it, and advances the plans. Returns false when the decode failed. */
    bool advance(std::vector<std::unique_ptr<Task>> & finished);

    const DecoderShared shared_;
    const DecoderOptions options_;
    const uint32_t outputs_limit_;
    /** True if no bit depends on the number of rows or threads: our kernels compute all operations that could. */
    bool has_fixed_bits_ = false;
    /** A decode of fewer tokens is padded; 0 for no padding. */
    size_t minimum_tokens_ = 0;
    Readout readout_;
    Context context_;
    KvCells cells_;
    BatchComposer composer_;
    DecodeBatch batch_;
    RunningPlans plans_;
};

}  // namespace tds
