#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "llama.h"
#include "prefix_cache.hpp"
#include "readout.hpp"
#include "task.hpp"

namespace tds {

struct LaneOptions {
    /** Cells of the KV cache. */
    uint32_t cells = 0;
    /** Cells that one plan may need. */
    uint32_t plan_cells = UINT32_MAX;
    /** Tokens of one decode. */
    uint32_t batch_tokens = 0;
    /** Another plan is taken in while fewer tokens than these wait to be decoded. */
    uint32_t fill_tokens = 0;
    /** A decode has at least so many tokens. */
    uint32_t minimum_tokens = 0;
    /**
     * ggml's CPU attention walks the cache in tiles of 64 cells, and what it adds up differs in the last bits when a
     * plan's tokens are spread over the tiles in another way. Aligned, every prefix starts with a tile, and every
     * branch with another one or in the rest of one that has room for all of it: a plan's logits are the same bits
     * wherever in the cache it lies and whatever lies beside it.
     */
    bool aligned = false;
    /** One plan at a time, and one branch a decode: no decode depends on anything but its own prefix and branch. */
    bool separate = false;
    /** A token id that makes a decode fail, for tests; -1 for none. */
    int32_t fault_token = -1;
    /** A token id whose logit cannot be read, for tests; -1 for none. */
    int32_t read_fault_token = -1;
};

/** What lanes share: one model, its readout and the prefixes that were read. */
struct LaneShared {
    llama_model * model = nullptr;
    Readout * readout = nullptr;
    PrefixCache * prefixes = nullptr;
    Counters * counters = nullptr;
    /** Set when the engine closes: a running decode stops soon. */
    const std::atomic<bool> * closing = nullptr;
    ggml_threadpool_t threadpool = nullptr;
    int threads = 1;
    bool on_gpu = false;
};

/**
 * One llama_context with one unified KV cache, and the plans that are being evaluated in it. A plan's prefix is one
 * sequence and each of its branches another that shares the prefix's cells. Used by the inference thread alone.
 */
class Lane {
  public:
    /** Throws std::runtime_error when the context cannot be created. */
    Lane(const LaneShared & shared, const LaneOptions & options);
    ~Lane();
    Lane(const Lane &) = delete;
    Lane & operator=(const Lane &) = delete;

    bool idle() const { return jobs_.empty(); }
    /** The device that the model's last matrix is on; null where its logits are more than a product with that. */
    ggml_backend_dev_t device() const;
    /** Whether the plan can ever be evaluated here. */
    bool fits(const Plan & plan) const;
    /** Whether another plan is wanted and there is room for this one now. */
    bool can_admit(const Task & task) const;
    /**
     * Takes the plan. Throws std::exception when the cache fails or memory is short: then the plan is here, to be
     * withdrawn, unless `task` still has it.
     */
    void admit(std::unique_ptr<Task> & task);
    /** Gives the plan up, if it is here. */
    std::unique_ptr<Task> withdraw(uint64_t id);
    /** Gives all plans up. */
    std::vector<std::unique_ptr<Task>> withdraw_all();

    /**
     * One decode. Plans that are complete go to `finished`. When the decode fails, or what was read of it, all others
     * go to `interrupted`, which can be admitted again, unless one was alone: then it is finished and has failed.
     */
    void step(std::vector<std::unique_ptr<Task>> & finished, std::vector<std::unique_ptr<Task>> & interrupted);
    /** Gives all plans up because of a fault that need not be of all: as `step` does after a failed decode. */
    void abandon(const std::string & fault, std::vector<std::unique_ptr<Task>> & finished,
                 std::vector<std::unique_ptr<Task>> & interrupted);

  private:
    /** Cells that are held by a sequence of their own until a token is to go there. */
    struct Wall {
        llama_seq_id sequence;
        uint32_t first_cell;
        uint32_t cells;
    };
    /** A branch that is being read. */
    struct Slot {
        const Branch * branch;
        llama_seq_id sequence;
        /** From the start of the wave's cells. */
        uint32_t first_cell;
        size_t tokens_done;
        size_t reads_done;
    };
    struct Job {
        std::unique_ptr<Task> task;
        llama_seq_id sequence = -1;
        uint32_t prefix_cell = 0;
        uint32_t wave_cell = 0;
        uint32_t wave_cells = 0;
        std::vector<Wall> prefix_walls;
        std::vector<Wall> wave_walls;
        size_t prefix_done = 0;
        /** Whether the branches' sequences hold the prefix. */
        bool branched = false;
        /** Branches that are read at once: as many as there are cells and sequences for. */
        std::vector<Slot> wave;
        size_t next_branch = 0;
        bool finished = false;
    };
    struct Need {
        uint32_t prefix_cells;
        uint32_t wave_cells;
        uint32_t sequences;
    };
    /** A read of the batch that is being put together: whose, and where its hidden state will be. */
    struct Output {
        Job * job;
        const Branch * branch;
        size_t read;
        int32_t batch_index;
    };

    static bool on_node(ggml_tensor * node, bool ask, void * lane);
    static bool on_abort(void * lane);

    uint32_t rounded(size_t tokens) const;
    uint32_t place(uint32_t used, const Branch & branch) const;
    uint32_t usable_cells() const { return options_.cells - 64; }
    Need need(const Plan & plan) const;
    static size_t waiting_tokens(const Job & job);
    llama_seq_id take_sequence();
    std::vector<Wall> build_walls(uint32_t first_cell, uint32_t cells);
    void open_walls(const std::vector<Wall> & walls, uint32_t first_cell, uint32_t cells);
    void start_wave(Job & job);
    void end_wave(Job & job);
    void share_prefix(Job & job);
    void restore_prefix(Job & job);
    void keep_prefix(Job & job);
    PrefixState written_state(llama_seq_id sequence);
    void end_job(Job & job);
    void clear();

    void warm_up();
    void add_token(int32_t token, int32_t position, bool output);
    bool add_prefix(Job & job, size_t limit);
    bool add_branches(Job & job);
    void add_fillers();
    /** Decodes the batch and reads what is wanted of it, which is empty afterwards, whatever happens. */
    bool decode();
    bool run_batch();
    void clear_batch();
    void read_outputs();
    /** Puts a batch together and decodes it, and moves the plans on. Returns false when the decode failed. */
    bool advance(std::vector<std::unique_ptr<Task>> & finished);

    LaneShared shared_;
    LaneOptions options_;
    llama_context * context_ = nullptr;
    llama_memory_t memory_ = nullptr;
    int32_t embedding_ = 0;
    int32_t vocabulary_ = 0;
    uint32_t outputs_limit_ = 0;

    std::deque<std::unique_ptr<Job>> jobs_;
    std::vector<llama_seq_id> free_sequences_;
    /** llama.cpp writes out the state of sequences below its `n_seq_max` only: a prefix is copied here for that. */
    static constexpr llama_seq_id transfer_sequence_ = 0;
    llama_seq_id filler_sequence_ = 0;
    /** Cells in use from the start of the cache (aligned), or in all. */
    uint32_t used_cells_ = 0;
    /** Sequence states of 64, 128, … cells that walls are built from. */
    std::vector<std::vector<uint8_t>> wall_states_;

    std::vector<int32_t> tokens_;
    std::vector<int32_t> positions_;
    std::vector<int8_t> output_flags_;
    std::vector<int32_t> sequence_counts_;
    std::vector<llama_seq_id *> sequences_;
    /** The sets of sequences that the batch's tokens belong to; the last one is for tokens that are added now. */
    std::deque<std::vector<llama_seq_id>> sequence_sets_;
    std::vector<Output> outputs_;
    uint32_t output_count_ = 0;
    bool has_fault_ = false;

    /** Whether the graph stops before the vocabulary, and the hidden states that it stopped at. */
    bool stops_at_hidden_ = false;
    const ggml_tensor * output_matrix_ = nullptr;
    bool output_is_plain_ = false;
    std::vector<float> hidden_;
};

}  // namespace tds
