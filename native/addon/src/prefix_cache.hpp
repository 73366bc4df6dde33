#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace tds {

/** Keys and values of a prefix, as llama.cpp writes them out. */
using PrefixState = std::shared_ptr<const std::vector<uint8_t>>;

/**
 * States of evaluated prefixes, bounded by their bytes. The least recently used one is dropped first. A state is found
 * only by its scope and exactly its tokens. States are kept outside the KV cache, where unused cells would slow the
 * attention of all plans. Used by the inference thread alone.
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

    /** Returns the bound. A kept state has fewer bytes. */
    size_t capacity_bytes() const { return capacity_bytes_; }

    /**
     * Keeps a state, unless it is already kept, or too large with its tokens. Drops the least recently used states to
     * make room.
     */
    void put(const std::string & scope, const std::vector<int32_t> & tokens, PrefixState state) {
        if (find(scope, tokens)) return;
        Entry entry{scope, tokens, std::move(state)};
        const size_t bytes = entry.bytes();
        if (bytes > capacity_bytes_) return;
        for (; bytes_ + bytes > capacity_bytes_; entries_.pop_back()) bytes_ -= entries_.back().bytes();
        bytes_ += bytes;
        entries_.push_front(std::move(entry));
    }

    /** Returns the bytes of all states. */
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
