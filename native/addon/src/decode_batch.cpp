#include "decode_batch.hpp"

#include <algorithm>

namespace tds {

std::vector<size_t> DecodeBatch::output_rows() const {
    std::vector<size_t> rows(output_flags_.size());
    for (size_t i = 1; i < rows.size(); i++) rows[i] = rows[i - 1] + (output_flags_[i - 1] ? 1 : 0);
    return rows;
}

bool DecodeBatch::has_token(int32_t token) const {
    return std::find(tokens_.begin(), tokens_.end(), token) != tokens_.end();
}

void DecodeBatch::start_sequences(std::vector<llama_seq_id> sequences) {
    sequence_sets_.push_back(std::move(sequences));
}

void DecodeBatch::add_token(int32_t token, int32_t position, bool is_output) {
    tokens_.push_back(token);
    positions_.push_back(position);
    sequence_counts_.push_back(static_cast<int32_t>(sequence_sets_.back().size()));
    sequences_.push_back(sequence_sets_.back().data());
    output_flags_.push_back(is_output ? 1 : 0);
    output_count_ += is_output ? 1 : 0;
}

void DecodeBatch::add_read(Task & task, const Read & read) {
    reads_.push_back({&task, &read, static_cast<int32_t>(tokens_.size())});
}

size_t DecodeBatch::add_padding(size_t minimum, llama_seq_id sequence) {
    const size_t count = tokens_.size();
    start_sequences({sequence});
    for (int32_t i = 0; tokens_.size() < minimum; i++) add_token(0, i, false);
    if (output_count_ == 1 && tokens_.size() > 1) {
        output_flags_[output_flags_[0] == 0 ? 0 : 1] = 1;
        output_count_++;
    }
    return tokens_.size() - count;
}

llama_batch DecodeBatch::view() {
    llama_batch batch = {};
    batch.n_tokens = static_cast<int32_t>(tokens_.size());
    batch.token = tokens_.data();
    batch.pos = positions_.data();
    batch.n_seq_id = sequence_counts_.data();
    batch.seq_id = sequences_.data();
    batch.logits = output_flags_.data();
    return batch;
}

void DecodeBatch::clear() {
    tokens_.clear();
    positions_.clear();
    output_flags_.clear();
    sequence_counts_.clear();
    sequences_.clear();
    sequence_sets_.clear();
    reads_.clear();
    output_count_ = 0;
}

}  // namespace tds
