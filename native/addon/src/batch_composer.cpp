#include "batch_composer.hpp"

#include <algorithm>

namespace tds {

std::vector<RunningPlan *> BatchComposer::compose(const RunningPlans & plans, DecodeBatch & batch) {
    std::vector<RunningPlan *> complete_prefixes;
    size_t later_tokens = 0;
    for (const auto & plan : plans) later_tokens += plan->waiting_tokens();
    for (const auto & plan : plans) {
        later_tokens -= plan->waiting_tokens();
        if (plan->waiting_prefix() > 0) {
            const size_t room = limits_.tokens - batch.size();
            const size_t kept_for_later = std::min(later_tokens, limits_.tokens / 2);
            if (kept_for_later >= room) continue;
            if (!add_prefix(*plan, room - kept_for_later, batch)) continue;
            complete_prefixes.push_back(plan.get());
            if (limits_.separate) break;
        }
        if (!add_wave(*plan, batch)) break;
    }
    return complete_prefixes;
}

/** Shares the prefix's cells so far with the next branches. */
void BatchComposer::share_prefix(RunningPlan & plan) {
    if (plan.prefix_done > 0) cells_.share_prefix(plan.cells);
    plan.shares_prefix = true;
}

/** Adds up to `limit` tokens of the prefix. Returns true when the whole prefix is in this batch or earlier ones. */
bool BatchComposer::add_prefix(RunningPlan & plan, size_t limit, DecodeBatch & batch) {
    const auto & prefix = plan.task->plan.prefix;
    const size_t count = std::min(plan.waiting_prefix(), limit);
    const bool is_last = count == plan.waiting_prefix();
    std::vector<llama_seq_id> sequences = {plan.cells.sequence};
    if (is_last && !plan.shares_prefix && !limits_.separate) {
        share_prefix(plan);
        for (const BranchCells & branch : plan.cells.branches) sequences.push_back(branch.sequence);
    }
    batch.start_sequences(std::move(sequences));
    cells_.open_prefix(plan.cells, plan.prefix_done, count);
    for (size_t i = 0; i < count; i++, plan.prefix_done++) {
        batch.add_token(prefix[plan.prefix_done], static_cast<int32_t>(plan.prefix_done), false);
    }
    counters_.decoded_tokens += count;
    return is_last;
}

/** Adds tokens of the wave's branches. Returns false when the batch is full. */
bool BatchComposer::add_wave(RunningPlan & plan, DecodeBatch & batch) {
    if (!plan.shares_prefix) share_prefix(plan);
    return std::all_of(plan.wave.begin(), plan.wave.end(),
                       [&](RunningBranch & branch) { return add_branch(plan, branch, batch); });
}

/** Adds tokens of a branch. Returns false when the batch is full. */
bool BatchComposer::add_branch(RunningPlan & plan, RunningBranch & branch, DecodeBatch & batch) {
    const auto & tokens = branch.branch->tokens;
    const size_t prefix = plan.task->plan.prefix.size();
    const size_t first = branch.tokens_done;
    batch.start_sequences({branch.cells.sequence});
    bool is_full = false;
    while (branch.waiting_tokens() > 0) {
        const bool is_read = branch.next_read() != nullptr;
        is_full = batch.size() == limits_.tokens || (is_read && batch.output_count() == limits_.outputs);
        if (is_full) break;
        for (; const Read * read = branch.next_read(); branch.reads_done++) batch.add_read(*plan.task, *read);
        batch.add_token(tokens[branch.tokens_done], static_cast<int32_t>(prefix + branch.tokens_done), is_read);
        branch.tokens_done++;
    }
    const size_t count = branch.tokens_done - first;
    cells_.open_branch(plan.cells, branch.cells, first, count);
    counters_.decoded_tokens += count;
    return !is_full;
}

}  // namespace tds
