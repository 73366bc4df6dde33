#include "plan.hpp"

#include <algorithm>

namespace tds {

namespace {

class Reader {
  public:
    Reader(const int32_t * data, size_t size) : data_(data), size_(size) {}

    bool take(int32_t & value) {
        if (at_ >= size_) return false;
        value = data_[at_++];
        return true;
    }

    /** Reads a count that fits the rest of the data. */
    bool take_count(size_t & count) {
        int32_t value = 0;
        if (!take(value) || value < 0 || static_cast<size_t>(value) > size_ - at_) return false;
        count = static_cast<size_t>(value);
        return true;
    }

    bool take_tokens(size_t count, int32_t vocabulary, std::vector<int32_t> & tokens) {
        if (count > size_ - at_) return false;
        tokens.assign(data_ + at_, data_ + at_ + count);
        at_ += count;
        return std::all_of(tokens.begin(), tokens.end(),
                           [&](int32_t token) { return token >= 0 && token < vocabulary; });
    }

    bool at_end() const { return at_ == size_; }

  private:
    const int32_t * data_;
    size_t size_;
    size_t at_ = 0;
};

}  // namespace

std::string unpack_plan(const int32_t * data, size_t size, int32_t vocabulary, int32_t context_tokens, Plan & plan) {
    Reader reader(data, size);
    size_t prefix_count = 0, branch_count = 0;
    if (!reader.take_count(prefix_count) || !reader.take_count(branch_count)) return "the plan is cut short";
    if (!reader.take_tokens(prefix_count, vocabulary, plan.prefix)) return "the prefix has an unknown token id";
    if (prefix_count > static_cast<size_t>(context_tokens)) return "the prefix is longer than the context";

    for (size_t i = 0; i < branch_count; i++) {
        size_t token_count = 0, read_count = 0;
        if (!reader.take_count(token_count) || !reader.take_count(read_count)) return "the plan is cut short";
        Branch branch;
        if (!reader.take_tokens(token_count, vocabulary, branch.tokens)) return "a branch has an unknown token id";
        if (prefix_count + token_count > static_cast<size_t>(context_tokens)) {
            return "a branch is longer than the context";
        }
        for (size_t r = 0; r < read_count; r++) {
            Read read;
            size_t wanted = 0;
            if (!reader.take(read.index) || !reader.take_count(wanted)) return "the plan is cut short";
            if (read.index < 0 || static_cast<size_t>(read.index) >= token_count) return "a read is outside its branch";
            if (!reader.take_tokens(wanted, vocabulary, read.tokens)) return "a read wants an unknown token id";
            read.offset = plan.logit_count;
            plan.logit_count += wanted;
            if (wanted > 0) branch.reads.push_back(std::move(read));
        }
        if (branch.reads.empty()) continue;
        std::stable_sort(branch.reads.begin(), branch.reads.end(),
                         [](const Read & a, const Read & b) { return a.index < b.index; });
        branch.tokens.resize(static_cast<size_t>(branch.reads.back().index) + 1);
        plan.branches.push_back(std::move(branch));
    }
    return reader.at_end() ? "" : "the plan has more data than it says";
}

}  // namespace tds
