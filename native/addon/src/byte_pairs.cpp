#include "byte_pairs.hpp"

#include <algorithm>
#include <unordered_map>

#include "gguf.h"
#include "unicode-data.h"
#include "unicode.h"

namespace tds {

namespace {

constexpr uint32_t CODE_POINTS = MAX_CODEPOINTS;
constexpr uint32_t ASCII = 0x80;

/** Returns GPT-2's printable character for a byte: the byte itself, or a code point from 256 on. */
std::string printable(uint8_t byte) {
    const auto is_itself = [](int value) {
        return (value >= '!' && value <= '~') || (value >= 0xA1 && value <= 0xAC) || value >= 0xAE;
    };
    uint32_t code_point = byte;
    if (!is_itself(byte)) {
        code_point = 256;
        for (int value = 0; value < byte; value++) code_point += is_itself(value) ? 0 : 1;
    }
    if (code_point < ASCII) return std::string(1, static_cast<char>(code_point));
    return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

CharacterClass class_of(uint16_t flags) {
    if (flags & unicode_cpt_flags::LETTER) return CharacterClass::letter;
    return flags & unicode_cpt_flags::NUMBER ? CharacterClass::number : CharacterClass::other;
}

/**
 * Returns the classes of all code points by llama.cpp's table, because another version of Unicode would give other
 * tokens.
 */
std::vector<CharacterClass> character_classes() {
    std::vector<CharacterClass> classes(CODE_POINTS, CharacterClass::other);
    const auto * range = unicode_ranges_flags.begin();
    // Each range ends where the next one starts. The last entry is only the end of the one before.
    for (; range + 1 < unicode_ranges_flags.end(); range++) {
        std::fill(classes.begin() + range[0].first, classes.begin() + range[1].first, class_of(range[0].second));
    }
    for (const uint32_t space : unicode_set_whitespace) classes[space] = CharacterClass::space;
    return classes;
}

struct GgufFile {
    explicit GgufFile(const std::string & path) : context(gguf_init_from_file(path.c_str(), {true, nullptr})) {}
    ~GgufFile() { gguf_free(context); }
    GgufFile(const GgufFile &) = delete;
    GgufFile & operator=(const GgufFile &) = delete;

    std::string text(const char * key) const {
        const int64_t id = gguf_find_key(context, key);
        return id >= 0 && gguf_get_kv_type(context, id) == GGUF_TYPE_STRING ? gguf_get_val_str(context, id) : "";
    }

    gguf_context * context;
};

}  // namespace

struct BytePairs::Reading {
    struct Pair {
        int32_t rank;
        /** Indexes of `symbols`. */
        int32_t left;
        int32_t right;
        uint64_t tokens;

        /** Orders a heap: its first element is the leftmost pair of the lowest rank. */
        bool operator<(const Pair & other) const {
            return rank != other.rank ? rank > other.rank : left > other.left;
        }
    };
    /** A token of a word, which may still be merged with its neighbours; −1 once it is part of the one before. */
    struct Symbol {
        int32_t token;
        int32_t previous;
        int32_t next;
    };

    std::string_view text;
    std::vector<int32_t> & tokens;
    std::vector<uint32_t> characters;
    std::vector<CharacterClass> classes;
    /** The byte at which each character starts, and at which the last one ends. */
    std::vector<uint32_t> offsets;
    std::vector<Symbol> symbols;
    std::vector<Pair> pairs;
};

std::unique_ptr<BytePairs> BytePairs::create(const llama_vocab * vocabulary, const std::string & path) {
    const GgufFile file(path);
    if (!file.context || file.text("tokenizer.ggml.model") != "gpt2") return nullptr;
    const std::string pattern = file.text("tokenizer.ggml.pre");
    if (pattern != "smollm" && pattern != "gpt-2") return nullptr;

    std::unordered_map<std::string, int32_t> ids;
    for (int32_t token = 0; token < llama_vocab_n_tokens(vocabulary); token++) {
        // llama.cpp finds user-defined tokens before it splits a text. This code does not.
        if (llama_vocab_get_attr(vocabulary, token) & LLAMA_TOKEN_ATTR_USER_DEFINED) return nullptr;
        ids[llama_vocab_get_text(vocabulary, token)] = token;
    }
    const auto id_of = [&](const std::string & text) {
        const auto found = ids.find(text);
        return found == ids.end() ? LLAMA_TOKEN_NULL : found->second;
    };

    std::unique_ptr<BytePairs> pairs(new BytePairs());
    pairs->single_digits_ = pattern == "smollm";
    for (size_t byte = 0; byte < pairs->byte_tokens_.size(); byte++) {
        // A byte without a token is skipped, as llama.cpp does.
        pairs->byte_tokens_[byte] = id_of(printable(static_cast<uint8_t>(byte)));
    }

    const int64_t key = gguf_find_key(file.context, "tokenizer.ggml.merges");
    const size_t count = key < 0 ? 0 : gguf_get_arr_n(file.context, key);
    size_t places = 2;
    while (places < 2 * count) places *= 2;
    pairs->merges_.resize(places);
    for (size_t rank = 0; rank < count; rank++) {
        const std::string text = gguf_get_arr_str(file.context, key, rank);
        const size_t space = text.find(' ', 1);
        if (space == std::string::npos) return nullptr;
        const std::string left = text.substr(0, space), right = text.substr(space + 1);
        const int32_t merged = id_of(left + right);
        // llama.cpp undoes a merge when no token has its text.
        if (id_of(left) == LLAMA_TOKEN_NULL || id_of(right) == LLAMA_TOKEN_NULL || merged == LLAMA_TOKEN_NULL) {
            return nullptr;
        }
        pairs->add_merge(pair_of(id_of(left), id_of(right)), static_cast<int32_t>(rank), merged);
    }

    pairs->classes_ = character_classes();
    return pairs;
}

void BytePairs::add_merge(uint64_t pair, int32_t rank, int32_t merged) {
    size_t place = place_of(pair);
    while (merges_[place].pair != UINT64_MAX) {
        if (merges_[place].pair == pair) return;
        place = (place + 1) & (merges_.size() - 1);
    }
    merges_[place] = {pair, rank, merged};
}

const BytePairs::Merge * BytePairs::find_merge(int32_t left, int32_t right) const {
    const uint64_t pair = pair_of(left, right);
    size_t place = place_of(pair);
    while (merges_[place].pair != UINT64_MAX) {
        if (merges_[place].pair == pair) return &merges_[place];
        place = (place + 1) & (merges_.size() - 1);
    }
    return nullptr;
}

bool BytePairs::tokenize(std::string_view text, std::vector<int32_t> & tokens) const {
    Reading reading{text, tokens, {}, {}, {}, {}, {}};
    if (!read_characters(reading)) return false;
    size_t first = 0;
    const size_t count = reading.characters.size();
    for (size_t i = 0; single_digits_ && i < count; i++) {
        if (reading.classes[i] != CharacterClass::number) continue;
        split(reading, first, i);
        encode_word(reading, i, i + 1);
        first = i + 1;
    }
    split(reading, first, count);
    return true;
}

bool BytePairs::read_characters(Reading & reading) const {
    const std::string_view text = reading.text;
    reading.characters.reserve(text.size());
    reading.classes.reserve(text.size());
    reading.offsets.reserve(text.size() + 1);
    for (size_t at = 0; at < text.size();) {
        const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : 0u; };
        const auto rest = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
        uint32_t character = byte(0);
        size_t length = 1;
        uint32_t least = 0;
        if (character >= 0xF0 && character < 0xF8 && rest(1) && rest(2) && rest(3)) {
            character = (character & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
            length = 4;
            least = 0x10000;
        } else if (character >= 0xE0 && character < 0xF0 && rest(1) && rest(2)) {
            character = (character & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
            length = 3;
            least = 0x800;
        } else if (character >= 0xC0 && character < 0xE0 && rest(1)) {
            character = (character & 31) << 6 | (byte(1) & 63);
            length = 2;
            least = ASCII;
        } else if (character >= ASCII) {
            return false;
        }
        if (character < least || character >= CODE_POINTS) return false;
        reading.characters.push_back(character);
        reading.classes.push_back(classes_[character]);
        reading.offsets.push_back(static_cast<uint32_t>(at));
        at += length;
    }
    reading.offsets.push_back(static_cast<uint32_t>(text.size()));
    return true;
}

/** GPT-2's pattern: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
void BytePairs::split(Reading & reading, size_t first, size_t last) const {
    const auto & characters = reading.characters;
    const auto class_at = [&](size_t at) { return at < last ? reading.classes[at] : CharacterClass::none; };
    const auto is = [&](size_t at, char character) {
        return at < last && characters[at] == static_cast<uint32_t>(character);
    };
    const auto contraction = [&](size_t at) -> size_t {
        if (!is(at, '\'')) return 0;
        if (is(at + 1, 's') || is(at + 1, 't') || is(at + 1, 'm') || is(at + 1, 'd')) return 2;
        const bool is_long = (is(at + 1, 'r') && is(at + 2, 'e')) || (is(at + 1, 'v') && is(at + 2, 'e')) ||
                             (is(at + 1, 'l') && is(at + 2, 'l'));
        return is_long ? 3 : 0;
    };
    for (size_t at = first; at < last;) {
        size_t end = at + contraction(at);
        if (end == at) {
            if (is(at, ' ') && class_at(at + 1) != CharacterClass::space && at + 1 < last) end++;
            const CharacterClass run = class_at(end);
            while (class_at(end) == run && end < last) end++;
            // The last space before a word belongs to it.
            if (run == CharacterClass::space && end < last && end - at > 1) end--;
        }
        encode_word(reading, at, end);
        at = end;
    }
}

void BytePairs::encode_word(Reading & reading, size_t first, size_t last) const {
    auto & symbols = reading.symbols;
    auto & pairs = reading.pairs;
    const auto push_pair = [&](int32_t left, int32_t right) {
        if (left < 0 || right < 0) return;
        const int32_t left_token = symbols[static_cast<size_t>(left)].token;
        const int32_t right_token = symbols[static_cast<size_t>(right)].token;
        const Merge * merge = find_merge(left_token, right_token);
        if (!merge) return;
        pairs.push_back({merge->rank, left, right, merge->pair});
        std::push_heap(pairs.begin(), pairs.end());
    };
    symbols.clear();
    pairs.clear();
    const std::string_view word = reading.text.substr(reading.offsets[first], reading.offsets[last] - reading.offsets[first]);
    const auto length = static_cast<int32_t>(word.size());
    for (int32_t i = 0; i < length; i++) {
        const auto byte = static_cast<uint8_t>(word[static_cast<size_t>(i)]);
        symbols.push_back({byte_tokens_[byte], i - 1, i + 1 < length ? i + 1 : -1});
    }
    for (int32_t i = 0; i + 1 < length; i++) push_pair(i, i + 1);
    while (!pairs.empty()) {
        std::pop_heap(pairs.begin(), pairs.end());
        const Reading::Pair pair = pairs.back();
        pairs.pop_back();
        Reading::Symbol & left = symbols[static_cast<size_t>(pair.left)];
        Reading::Symbol & right = symbols[static_cast<size_t>(pair.right)];
        // The pair is stale: one of its tokens has been merged with another.
        if (left.next != pair.right || pair_of(left.token, right.token) != pair.tokens) continue;
        left.token = find_merge(left.token, right.token)->merged;
        left.next = right.next;
        right.token = LLAMA_TOKEN_NULL;
        if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = pair.left;
        right.next = -1;
        push_pair(left.previous, pair.left);
        push_pair(pair.left, left.next);
    }
    for (const Reading::Symbol & symbol : symbols) {
        if (symbol.token != LLAMA_TOKEN_NULL) reading.tokens.push_back(symbol.token);
    }
}

}  // namespace tds
