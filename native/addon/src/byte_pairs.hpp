#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llama.h"

namespace tds {

/** The class of a code point in the patterns that split text into words; `none` is the end of the text. */
enum class CharacterClass : uint8_t { none, other, letter, number, space };

/**
 * Byte-pair encoding for vocabularies of GPT-2's kind. It gives exactly the tokens of `llama_tokenize` without special
 * tokens, about ten times as fast. For vocabularies like decision-1's, llama.cpp compiles a regular expression at every
 * call.
 */
class BytePairs {
  public:
    /**
     * Returns null for a vocabulary of another kind, which only `llama_tokenize` supports. `path` is the model's file.
     */
    static std::unique_ptr<BytePairs> create(const llama_vocab * vocabulary, const std::string & path);

    /** Appends the text's tokens. Returns false and appends none when it is not UTF-8. */
    bool tokenize(std::string_view text, std::vector<int32_t> & tokens) const;

  private:
    /** Two tokens that are merged into one; pairs of a lower rank are merged first. */
    struct Merge {
        uint64_t pair = UINT64_MAX;
        int32_t rank = 0;
        int32_t merged = 0;
    };
    /** A text while it is tokenized: its characters, and memory that is reused from word to word. */
    struct Reading;

    static uint64_t pair_of(int32_t left, int32_t right) {
        return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    }
    size_t place_of(uint64_t pair) const { return pair * 0x9E3779B97F4A7C15u >> 32 & (merges_.size() - 1); }
    void add_merge(uint64_t pair, int32_t rank, int32_t merged);
    const Merge * find_merge(int32_t left, int32_t right) const;
    bool read_characters(Reading & reading) const;
    void split(Reading & reading, size_t first, size_t last) const;
    void encode_word(Reading & reading, size_t first, size_t last) const;

    std::vector<CharacterClass> classes_;
    std::array<int32_t, 256> byte_tokens_;
    /** A hash table with open addressing; at least half of its slots are empty. */
    std::vector<Merge> merges_;
    /** True if every digit is a separate word. */
    bool single_digits_ = false;
};

}  // namespace tds
