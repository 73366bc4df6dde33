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
 * States of prefixes that were read, least recently used out first, bounded by their bytes. A state is found only by
 * the scope that it was read for and by exactly its tokens. States are kept outside of the KV cache: cells that no
 * running plan needs would slow every other plan's attention. Used by the inference thread alone.
 */
class PrefixCache {
  public:
    explicit PrefixCache(size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

    PrefixState find(const std::string & scope, const std::vector<int32_t> & tokens) {
        for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
            if (entry->scope == scope && entry->tokens == tokens) {
                entries_.splice(entries_.begin(), entries_, entry);
                return entry->state;
            }
        }
        return nullptr;
    }

    /** Whether a state of so many bytes may be kept at all. */
    bool has_room_for(size_t state_bytes) const { return state_bytes < capacity_bytes_; }

    /** Keeps a state, unless it is kept already or has more bytes than all states may have. */
    void put(const std::string & scope, const std::vector<int32_t> & tokens, PrefixState state) {
        if (find(scope, tokens)) return;
        entries_.push_front({scope, tokens, std::move(state)});
        bytes_ += entries_.front().bytes();
        while (bytes_ > capacity_bytes_) {
            bytes_ -= entries_.back().bytes();
            entries_.pop_back();
        }
    }

    /** Of all that is kept. */
    size_t bytes() const { return bytes_; }

  private:
    struct Entry {
        std::string scope;
        std::vector<int32_t> tokens;
        PrefixState state;

        size_t bytes() const {
            return sizeof(Entry) + scope.size() + tokens.size() * sizeof(int32_t) + state->size();
        }
    };

    size_t capacity_bytes_;
    size_t bytes_ = 0;
    std::list<Entry> entries_;
};

}  // namespace tds
