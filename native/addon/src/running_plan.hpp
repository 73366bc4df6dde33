#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kv_cells.hpp"
#include "task.hpp"

namespace tds {

/** A running branch and its progress. */
struct RunningBranch {
    const Branch * branch;
    BranchCells cells;
    size_t tokens_done = 0;
    size_t reads_done = 0;

    size_t waiting_tokens() const { return branch->tokens.size() - tokens_done; }
    /** Returns the next read, if it is at the next token; null otherwise. */
    const Read * next_read() const {
        if (reads_done == branch->reads.size()) return nullptr;
        const Read & read = branch->reads[reads_done];
        return read.index == static_cast<int32_t>(tokens_done) ? &read : nullptr;
    }
};

/** A running plan and its progress. "Done" tokens are in a decode. */
struct RunningPlan {
    std::unique_ptr<Task> task;
    PlanCells cells;
    size_t prefix_done = 0;
    /** True if the sequences of the wave's branches have the prefix. */
    bool shares_prefix = false;
    /** The branches evaluated at once, as many as fit the cells and sequences. */
    std::vector<RunningBranch> wave;
    /** The first branch after the wave. */
    size_t next_branch = 0;
    bool is_finished = false;

    size_t waiting_prefix() const { return task->plan.prefix.size() - prefix_done; }
    /** Returns the tokens of the prefix and of the wave's branches that are not in a decode yet. */
    size_t waiting_tokens() const {
        size_t tokens = waiting_prefix();
        for (const RunningBranch & branch : wave) tokens += branch.waiting_tokens();
        return tokens;
    }
    bool has_branches_left() const { return next_branch < task->plan.branches.size(); }
};

}  // namespace tds
