#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "decode_batch.hpp"
#include "kv_cells.hpp"
#include "running_plan.hpp"
#include "task.hpp"

namespace tds {

struct BatchLimits {
    /** Tokens of one decode. */
    size_t tokens = 0;
    /** Tokens of one decode whose output is computed. */
    size_t outputs = 0;
    /** One plan at a time, and one branch a decode. */
    bool separate = false;
};

using RunningPlans = std::deque<std::unique_ptr<RunningPlan>>;

/** Chooses which tokens of the running plans go into the next decode. */
class BatchComposer {
  public:
    /** The cells and the counters must outlive this. */
    BatchComposer(const BatchLimits & limits, KvCells & cells, Counters & counters)
        : limits_(limits), cells_(cells), counters_(counters) {}

    /**
     * Adds tokens of the plans to an empty batch, first come first served, and counts them as done. A plan's prefix may
     * take at most half of the decode from the plans after it. Returns the plans whose prefix is complete with this
     * batch.
     */
    std::vector<RunningPlan *> compose(const RunningPlans & plans, DecodeBatch & batch);

  private:
    bool add_prefix(RunningPlan & plan, size_t limit, DecodeBatch & batch);
    bool add_wave(RunningPlan & plan, DecodeBatch & batch);
    bool add_branch(RunningPlan & plan, RunningBranch & branch, DecodeBatch & batch);
    void share_prefix(RunningPlan & plan);

    const BatchLimits limits_;
    KvCells & cells_;
    Counters & counters_;
};

}  // namespace tds
