#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kv_cells.hpp"
#include "task.hpp"

namespace tds {

/** A branch that is being read, and how far. */
struct RunningBranch {
    const Branch * branch;
    BranchCells cells;
    size_t tokens_done = 0;
    size_t reads_done = 0;

    size_t waiting_tokens() const { return branch->tokens.size() - tokens_done; }
    /** The next read, if it is at the next token. */
    const Read * next_read() const {
        if (reads_done == branch->reads.size()) return nullptr;
        const Read & read = branch->reads[reads_done];
        return read.index == static_cast<int32_t>(tokens_done) ? &read : nullptr;
    }
};

/** A plan that is being evaluated, and how far. "Done" is what is in a decode. */
struct RunningPlan {
    std::unique_ptr<Task> task;
    PlanCells cells;
    size_t prefix_done = 0;
    /** Whether the sequences of the wave's branches have the prefix. */
    bool shares_prefix = false;
    /** Branches that are read at once: as many as there are cells and sequences for. */
    std::vector<RunningBranch> wave;
    /** The first branch after the wave. */
    size_t next_branch = 0;
    bool is_finished = false;

    size_t waiting_prefix() const { return task->plan.prefix.size() - prefix_done; }
    /** Tokens that are not in a decode yet: of the prefix, and of the wave's branches. */
    size_t waiting_tokens() const {
        size_t tokens = waiting_prefix();
        for (const RunningBranch & branch : wave) tokens += branch.waiting_tokens();
        return tokens;
    }
    bool has_branches_left() const { return next_branch < task->plan.branches.size(); }
};

}  // namespace tds
