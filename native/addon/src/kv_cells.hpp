#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "decode_batch.hpp"
#include "llama.h"
#include "plan.hpp"
#include "prefix_cache.hpp"

namespace tds {

/** The number of KV cells in a tile of CPU attention. */
constexpr uint32_t TILE_CELLS = 64;
/** The largest number of cells of a wave's branches, unless one branch alone needs more. */
constexpr uint32_t WAVE_CELLS = 1024;

struct KvCellsOptions {
    /** Cells that one plan may need. */
    uint32_t plan_cells = UINT32_MAX;
    /** The largest number of branches of a plan that are evaluated at once. */
    uint32_t branches_at_once = 1;
    /**
     * ggml's CPU attention adds up tile by tile. So a plan's logits differ in the last bits when its tokens lie
     * differently in the tiles. Aligned, every prefix starts with a tile. Every branch starts with another tile, or
     * lies in the rest of one that has room for all of it. Then a plan's logits have the same bits wherever in the
     * cache it lies and whatever lies beside it.
     */
    bool aligned = false;
};

/** Cells that a reserved sequence occupies until tokens are decoded there. */
struct ReservedCells {
    llama_seq_id sequence;
    uint32_t first_cell;
    uint32_t cells;
};

/** The place of a branch. */
struct BranchCells {
    llama_seq_id sequence = -1;
    /** Counted from the wave's first cell. */
    uint32_t first_cell = 0;
};

/** The place of a plan: its prefix, and then the current wave of branches. */
struct PlanCells {
    llama_seq_id sequence = -1;
    uint32_t prefix_cell = 0;
    uint32_t prefix_cells = 0;
    uint32_t wave_cell = 0;
    uint32_t wave_cells = 0;
    std::vector<ReservedCells> reserved_prefix;
    std::vector<ReservedCells> reserved_wave;
    std::vector<BranchCells> branches;
    /** The cells of the wave's branches so far. */
    uint32_t wave_cells_used = 0;
};

/**
 * The KV cells of one context, and the places of plans in them. A plan's prefix is one sequence. Each branch is
 * another, which shares the prefix's cells. Used by the inference thread alone, but for `fits`.
 */
class KvCells {
  public:
    /** `context` must outlive this. */
    KvCells(llama_context * context, const KvCellsOptions & options);

    /**
     * Prepares reservations, which are copies of sequence 0. It is called once, when that sequence holds one tile.
     * Clears the cells.
     */
    void learn_reservations();
    /** Frees all cells. The places of all plans become invalid. */
    void clear();

    /** Bytes of all cells, used and free; 0 before `learn_reservations`. */
    size_t bytes() const { return bytes_of(cells_); }
    /** Bytes of the cells of so many tokens, nearly those of their saved state; 0 before `learn_reservations`. */
    size_t bytes_of(size_t tokens) const { return tile_bytes_ / TILE_CELLS * tokens; }
    /** Returns true if the plan fits into empty cells. Any thread. */
    bool fits(const Plan & plan) const;
    /** Returns true if the plan fits beside the current ones. */
    bool has_room_for(const Plan & plan) const;

    /** Places the plan. Throws std::exception when the cache fails or memory is short; then only `clear` helps. */
    PlanCells take(const Plan & plan);
    /**
     * Frees a plan's cells. If aligned, they stay taken until `clear`, because llama.cpp would fill a hole before a
     * running plan's own cells.
     */
    void release(PlanCells & plan);

    /** Restores a saved prefix of `tokens` tokens into the plan's cells. Throws as `take` does. */
    void restore_prefix(const PlanCells & plan, const std::vector<uint8_t> & state, size_t tokens);
    /** Returns the state of the plan's prefix; null if it has `limit_bytes` or more, or memory is short. */
    PrefixState save_prefix(const PlanCells & plan, size_t limit_bytes);

    /** Starts a wave without branches in the plan's cells. Throws as `take` does. */
    void start_wave(PlanCells & plan);
    /** Places a branch in the wave. Returns nothing if the wave has no room, or no sequence is left. */
    std::optional<BranchCells> take_branch(PlanCells & plan, const Branch & branch);
    /** Shares the prefix's cells so far with the wave's branches. */
    void share_prefix(const PlanCells & plan);
    /** Frees the wave's branches. */
    void end_wave(PlanCells & plan);

    /** Makes the next decode place the prefix's tokens from `first` on in their cells. */
    void open_prefix(const PlanCells & plan, size_t first, size_t count);
    /** Does the same for tokens of a branch. */
    void open_branch(const PlanCells & plan, const BranchCells & branch, size_t first, size_t count);

    /** The sequence of padding. */
    llama_seq_id padding_sequence() const { return padding_sequence_; }
    void remove_padding();

  private:
    struct Need {
        uint32_t prefix_cells;
        uint32_t wave_cells;
        uint32_t sequences;
    };

    /** Returns the number of cells without those for padding. */
    uint32_t usable_cells() const { return cells_ - GGML_ROWS_MIN; }
    uint32_t rounded(size_t tokens) const;
    uint32_t blocks_of(uint32_t cells) const;
    uint32_t first_cell_of(const Branch & branch, uint32_t used) const;
    Need need(const Plan & plan) const;
    llama_seq_id take_sequence();
    void free_sequence(llama_seq_id sequence);
    std::vector<ReservedCells> reserve(uint32_t first_cell, uint32_t cells);
    void open(const std::vector<ReservedCells> & reserved, uint32_t first_cell, uint32_t cells);
    std::vector<uint8_t> written_state(llama_seq_id sequence);
    void read_state(const std::vector<uint8_t> & state, llama_seq_id sequence, const char * fault);

    llama_context * context_;
    llama_memory_t memory_;
    KvCellsOptions options_;
    uint32_t cells_;
    /** Of the state of a tile, which has few bytes beside those of its cells. */
    size_t tile_bytes_ = 0;
    int block_sizes_;
    /** Cells in use: from the start of the cache if aligned, else in total. */
    uint32_t used_cells_ = 0;
    std::vector<llama_seq_id> free_sequences_;
    /**
     * The sequence to which a prefix is copied to save it, because llama.cpp saves sequences below `n_seq_max` only.
     */
    static constexpr llama_seq_id transfer_sequence_ = 0;
    llama_seq_id padding_sequence_;
    /** States of 64, 128, … occupied cells. */
    std::vector<std::vector<uint8_t>> reservation_states_;
};

}  // namespace tds
