#include "kv_cells.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "attention.hpp"
#include "memory.hpp"

namespace tds {

namespace {

static_assert(attention::CELLS == TILE_CELLS, "our attention walks the cache in ggml's tiles");

/** Within a tile, attention adds up groups of at most this many cells, so a branch must start a group. */
constexpr uint32_t GROUP_CELLS = 16;
/** Reservations consist of blocks of 64 << 0 … 64 << 4 cells, and of larger ones where there are very many cells. */
constexpr int BLOCK_SIZES_MIN = 5;
/** Blocks of the largest size that all cells may have: each is a sequence, of which llama.cpp has 256. */
constexpr uint32_t LARGEST_BLOCKS_MAX = 128;

uint32_t block_cells(int size) { return TILE_CELLS << size; }

/** Returns the number of block sizes for `cells`. */
int block_sizes_of(uint32_t cells) {
    int sizes = BLOCK_SIZES_MIN;
    while (cells / block_cells(sizes - 1) > LARGEST_BLOCKS_MAX) sizes++;
    return sizes;
}

}  // namespace

KvCells::KvCells(llama_context * context, const KvCellsOptions & options)
    : context_(context),
      memory_(llama_get_memory(context)),
      options_(options),
      cells_(llama_n_ctx(context)),
      block_sizes_(block_sizes_of(cells_)),
      padding_sequence_(static_cast<llama_seq_id>(llama_max_parallel_sequences()) - 1) {
    // Reservations shift cells, which models with multi-dimensional positions do not allow.
    options_.aligned = options_.aligned && llama_memory_can_shift(memory_);
    clear();
}

void KvCells::learn_reservations() {
    tile_bytes_ = llama_state_seq_get_size(context_, 0);
    if (options_.aligned) {
        for (int size = 0; size < block_sizes_; size++) {
            std::vector<uint8_t> state = written_state(0);
            if (size + 1 < block_sizes_) {
                // Sequence 0 is doubled: a copy of its cells goes to sequence 1, is moved behind it, and joins it.
                read_state(state, 1, "the cache's state could not be written");
                llama_memory_seq_add(memory_, 1, -1, -1, static_cast<llama_pos>(block_cells(size)));
                llama_memory_seq_cp(memory_, 1, 0, -1, -1);
                llama_memory_seq_rm(memory_, 1, -1, -1);
            }
            reservation_states_.push_back(std::move(state));
        }
    }
    clear();
}

void KvCells::clear() {
    llama_memory_clear(memory_, false);
    used_cells_ = 0;
    free_sequences_.clear();
    for (llama_seq_id sequence = padding_sequence_ - 1; sequence > transfer_sequence_; sequence--) {
        free_sequences_.push_back(sequence);
    }
}

/** Returns the number of blocks, and so sequences, that `reserve` needs. */
uint32_t KvCells::blocks_of(uint32_t cells) const {
    uint32_t blocks = 0;
    for (int size = block_sizes_ - 1; size >= 0; size--) {
        blocks += cells / block_cells(size);
        cells %= block_cells(size);
    }
    return blocks;
}

uint32_t KvCells::rounded(size_t tokens) const {
    const auto count = static_cast<uint32_t>(tokens);
    return options_.aligned ? round_up(count, TILE_CELLS) : count;
}

/** Returns the first cell of a branch in a wave with `used` taken cells. */
uint32_t KvCells::first_cell_of(const Branch & branch, uint32_t used) const {
    if (!options_.aligned) return used;
    const uint32_t first_cell = round_up(used, GROUP_CELLS);
    const bool fits_in_tile = first_cell % TILE_CELLS + branch.tokens.size() <= TILE_CELLS;
    return fits_in_tile ? first_cell : round_up(used, TILE_CELLS);
}

KvCells::Need KvCells::need(const Plan & plan) const {
    uint32_t longest = 0, wave = 0, branches = 0;
    for (const Branch & branch : plan.branches) {
        const auto cells = static_cast<uint32_t>(branch.tokens.size());
        longest = std::max(longest, cells);
        const uint32_t end = first_cell_of(branch, wave) + cells;
        if (branches < options_.branches_at_once && end <= WAVE_CELLS) {
            wave = end;
            branches++;
        }
    }
    const uint32_t prefix = rounded(plan.prefix.size());
    const uint32_t room = prefix < usable_cells() ? usable_cells() - prefix : 0;
    wave = std::max(rounded(longest), std::min(rounded(wave), room / TILE_CELLS * TILE_CELLS));
    uint32_t sequences = 1 + std::min<uint32_t>(options_.branches_at_once, static_cast<uint32_t>(plan.branches.size()));
    if (options_.aligned) sequences += blocks_of(prefix) + blocks_of(wave);
    return {prefix, wave, sequences};
}

bool KvCells::fits(const Plan & plan) const {
    const Need needed = need(plan);
    return needed.prefix_cells + needed.wave_cells <= std::min(options_.plan_cells, usable_cells()) &&
           needed.sequences < static_cast<uint32_t>(padding_sequence_);
}

bool KvCells::has_room_for(const Plan & plan) const {
    const Need needed = need(plan);
    return used_cells_ + needed.prefix_cells + needed.wave_cells <= usable_cells() &&
           needed.sequences <= free_sequences_.size();
}

llama_seq_id KvCells::take_sequence() {
    if (free_sequences_.empty()) throw std::logic_error("no sequence is left");
    const llama_seq_id sequence = free_sequences_.back();
    free_sequences_.pop_back();
    return sequence;
}

void KvCells::free_sequence(llama_seq_id sequence) {
    llama_memory_seq_rm(memory_, sequence, -1, -1);
    free_sequences_.push_back(sequence);
}

PlanCells KvCells::take(const Plan & plan) {
    const Need needed = need(plan);
    PlanCells taken;
    taken.sequence = take_sequence();
    taken.prefix_cell = used_cells_;
    taken.prefix_cells = needed.prefix_cells;
    taken.wave_cell = used_cells_ + needed.prefix_cells;
    taken.wave_cells = needed.wave_cells;
    used_cells_ += needed.prefix_cells + needed.wave_cells;
    if (options_.aligned) taken.reserved_prefix = reserve(taken.prefix_cell, needed.prefix_cells);
    return taken;
}

void KvCells::release(PlanCells & plan) {
    if (options_.aligned) return;
    end_wave(plan);
    free_sequence(plan.sequence);
    used_cells_ -= plan.prefix_cells + plan.wave_cells;
}

/**
 * Reserves the lowest free cells, which must be these. llama.cpp always gives the tokens of a batch the lowest free
 * cells. So all other cells are occupied, and only the opened ones are free.
 */
std::vector<ReservedCells> KvCells::reserve(uint32_t first_cell, uint32_t cells) {
    std::vector<ReservedCells> reserved;
    for (int size = block_sizes_ - 1; size >= 0; size--) {
        for (const uint32_t block = block_cells(size); cells >= block; cells -= block, first_cell += block) {
            const ReservedCells one = {take_sequence(), first_cell, block};
            read_state(reservation_states_[static_cast<size_t>(size)], one.sequence, "cells could not be held");
            reserved.push_back(one);
        }
    }
    return reserved;
}

void KvCells::open(const std::vector<ReservedCells> & reserved, uint32_t first_cell, uint32_t cells) {
    const uint32_t last_cell = first_cell + cells;
    for (const ReservedCells & one : reserved) {
        const uint32_t from = std::max(first_cell, one.first_cell);
        const uint32_t to = std::min(last_cell, one.first_cell + one.cells);
        if (from >= to) continue;
        llama_memory_seq_rm(memory_, one.sequence, static_cast<llama_pos>(from - one.first_cell),
                            static_cast<llama_pos>(to - one.first_cell));
    }
}

std::vector<uint8_t> KvCells::written_state(llama_seq_id sequence) {
    std::vector<uint8_t> state(llama_state_seq_get_size(context_, sequence));
    if (llama_state_seq_get_data(context_, state.data(), state.size(), sequence) != state.size()) {
        throw std::runtime_error("the cache's state could not be read");
    }
    return state;
}

void KvCells::read_state(const std::vector<uint8_t> & state, llama_seq_id sequence, const char * fault) {
    if (llama_state_seq_set_data(context_, state.data(), state.size(), sequence) == 0) throw std::runtime_error(fault);
}

void KvCells::restore_prefix(const PlanCells & plan, const std::vector<uint8_t> & state, size_t tokens) {
    open_prefix(plan, 0, tokens);
    read_state(state, plan.sequence, "a prefix could not be restored");
}

PrefixState KvCells::save_prefix(const PlanCells & plan, size_t limit_bytes) {
    llama_memory_seq_cp(memory_, plan.sequence, transfer_sequence_, -1, -1);
    PrefixState state;
    if (llama_state_seq_get_size(context_, transfer_sequence_) < limit_bytes) {
        try {
            state = std::make_shared<std::vector<uint8_t>>(written_state(transfer_sequence_));
        } catch (const std::exception &) {
            // A prefix that is not kept is evaluated again.
        }
    }
    llama_memory_seq_rm(memory_, transfer_sequence_, -1, -1);
    return state;
}

void KvCells::start_wave(PlanCells & plan) {
    if (options_.aligned) plan.reserved_wave = reserve(plan.wave_cell, plan.wave_cells);
    plan.wave_cells_used = 0;
}

std::optional<BranchCells> KvCells::take_branch(PlanCells & plan, const Branch & branch) {
    if (plan.branches.size() == options_.branches_at_once) return std::nullopt;
    const uint32_t first_cell = first_cell_of(branch, plan.wave_cells_used);
    const uint32_t end = first_cell + static_cast<uint32_t>(branch.tokens.size());
    if (end > plan.wave_cells) return std::nullopt;
    // Other plans may have started since the last wave, which had fewer branches and left at least one sequence.
    if (free_sequences_.empty() && !plan.branches.empty()) return std::nullopt;
    plan.wave_cells_used = end;
    return plan.branches.emplace_back(BranchCells{take_sequence(), first_cell});
}

void KvCells::share_prefix(const PlanCells & plan) {
    for (const BranchCells & branch : plan.branches) {
        llama_memory_seq_cp(memory_, plan.sequence, branch.sequence, -1, -1);
    }
}

void KvCells::end_wave(PlanCells & plan) {
    for (const BranchCells & branch : plan.branches) free_sequence(branch.sequence);
    for (const ReservedCells & reserved : plan.reserved_wave) free_sequence(reserved.sequence);
    plan.branches.clear();
    plan.reserved_wave.clear();
}

void KvCells::open_prefix(const PlanCells & plan, size_t first, size_t count) {
    open(plan.reserved_prefix, plan.prefix_cell + static_cast<uint32_t>(first), static_cast<uint32_t>(count));
}

void KvCells::open_branch(const PlanCells & plan, const BranchCells & branch, size_t first, size_t count) {
    open(plan.reserved_wave, plan.wave_cell + branch.first_cell + static_cast<uint32_t>(first),
         static_cast<uint32_t>(count));
}

void KvCells::remove_padding() { llama_memory_seq_rm(memory_, padding_sequence_, -1, -1); }

}  // namespace tds
