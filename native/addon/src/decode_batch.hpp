#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "llama.h"
#include "task.hpp"

namespace tds {

/** A read of a batch: whose logits they are, and which of the batch's tokens they are read at. */
struct BatchRead {
    Task * task;
    const Read * read;
    int32_t token_index;
};

/** The tokens of one decode, and what is read of it. */
class DecodeBatch {
  public:
    size_t size() const { return tokens_.size(); }
    /** Tokens whose output is computed. */
    size_t output_count() const { return output_count_; }
    /** Rows of the output: for each token of the batch, the outputs before it. */
    std::vector<size_t> output_rows() const;
    bool has_token(int32_t token) const;
    const std::vector<BatchRead> & reads() const { return reads_; }

    /** Tokens that are added from now on belong to these sequences. */
    void start_sequences(std::vector<llama_seq_id> sequences);
    void add_token(int32_t token, int32_t position, bool is_output);
    /** The token that is added next is read. */
    void add_read(Task & task, const Read & read);
    /**
     * Fills the batch up to `minimum` tokens, and to two outputs if it has one. Small batches take other kernels, with
     * other bits: ggml's CPU attention below 64 rows, its matrix product for one. Returns how many tokens were added.
     */
    size_t add_padding(size_t minimum, llama_seq_id sequence);

    /** The batch for `llama_decode`; points into this. */
    llama_batch view();
    void clear();

  private:
    std::vector<int32_t> tokens_;
    std::vector<int32_t> positions_;
    std::vector<int8_t> output_flags_;
    std::vector<int32_t> sequence_counts_;
    std::vector<llama_seq_id *> sequences_;
    /** What `sequences_` points to; a deque does not move them. */
    std::deque<std::vector<llama_seq_id>> sequence_sets_;
    std::vector<BatchRead> reads_;
    size_t output_count_ = 0;
};

}  // namespace tds
