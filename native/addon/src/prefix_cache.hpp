#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace tds {

/** What the cache memory holds of a prefix, as llama.cpp writes it out. */
using PrefixState = std::shared_ptr<const std::vector<uint8_t>>;

/**
 * States of prefixes that were read, least recently used out first, bounded by their tokens. A state is found only by
 * the scope that it was read for and by exactly its tokens. States are kept outside of the KV cache: cells that no
 * running plan needs would slow every other plan's attention. Used by the inference thread alone.
 */
class PrefixCache {
  public:
    explicit PrefixCache(size_t capacity_tokens) : capacity_tokens_(capacity_tokens) {}

    PrefixState find(const std::string & scope, const std::vector<int32_t> & tokens) {
        for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
            if (entry->scope == scope && entry->tokens == tokens) {
                entries_.splice(entries_.begin(), entries_, entry);
                return entry->state;
            }
        }
        return nullptr;
    }

    bool wants(const std::vector<int32_t> & tokens) const {
        return !tokens.empty() && tokens.size() <= capacity_tokens_;
    }

    void put(const std::string & scope, const std::vector<int32_t> & tokens, PrefixState state) {
        if (!wants(tokens) || find(scope, tokens)) return;
        entries_.push_front({scope, tokens, std::move(state)});
        used_tokens_ += tokens.size();
        while (used_tokens_ > capacity_tokens_) {
            used_tokens_ -= entries_.back().tokens.size();
            entries_.pop_back();
        }
    }

  private:
    struct Entry {
        std::string scope;
        std::vector<int32_t> tokens;
        PrefixState state;
    };

    size_t capacity_tokens_;
    size_t used_tokens_ = 0;
    std::list<Entry> entries_;
};

}  // namespace tds
