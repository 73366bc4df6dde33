#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "llama.h"
#include "task.hpp"

namespace tds {

/** ggml's CPU attention computes fewer rows by another kernel, with other bits. */
constexpr uint32_t GGML_ROWS_MIN = 64;

/** A read of a batch: its task, and the token of the batch after which logits are read. */
struct BatchRead {
    Task * task;
    const Read * read;
    int32_t token_index;
};

/** The tokens and reads of one decode. */
class DecodeBatch {
  public:
    size_t size() const { return tokens_.size(); }
    /** Tokens whose output is computed. */
    size_t output_count() const { return output_count_; }
    /** Returns the row of the output by token: the number of outputs before it. */
    std::vector<size_t> output_rows() const;
    bool has_token(int32_t token) const;
    const std::vector<BatchRead> & reads() const { return reads_; }

    /** Assigns the tokens that are added next to these sequences. */
    void start_sequences(std::vector<llama_seq_id> sequences);
    void add_token(int32_t token, int32_t position, bool is_output);
    /** Adds a read of the token that is added next. */
    void add_read(Task & task, const Read & read);
    /**
     * Fills the batch up to `minimum` tokens, and to two outputs if it has one. ggml uses other kernels, with other
     * bits, for small batches: its CPU attention below `GGML_ROWS_MIN` rows, its product below
     * `KernelBackend::COLUMNS_MIN` columns. Returns how many tokens were added.
     */
    size_t add_padding(size_t minimum, llama_seq_id sequence);

    /** Returns the batch for `llama_decode`, which points into this object. */
    llama_batch view();
    void clear();

  private:
    std::vector<int32_t> tokens_;
    std::vector<int32_t> positions_;
    std::vector<int8_t> output_flags_;
    std::vector<int32_t> sequence_counts_;
    std::vector<llama_seq_id *> sequences_;
    /** The sets that `sequences_` points to. A deque does not move them. */
    std::deque<std::vector<llama_seq_id>> sequence_sets_;
    std::vector<BatchRead> reads_;
    size_t output_count_ = 0;
};

}  // namespace tds
