#include "tokenizer.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <system_error>

#include "large_stack.hpp"

namespace tds {

namespace {

/** The smallest slice. An ordinary request is one slice, for which llama.cpp takes some 30 ms. */
constexpr size_t SLICE_BYTES = 32768;
constexpr unsigned MOST_THREADS = 4;
/**
 * The bytes of stack for each byte of a text. For many vocabularies, llama.cpp splits text by `std::regex`, which
 * recurses for every character of a word. Each call took 353 bytes in the measured libraries.
 */
constexpr size_t STACK_PER_BYTE = 1024;
/** The longest text for which any thread's own stack suffices. */
constexpr size_t SHORT_TEXT = 1024;
constexpr size_t STACK_BASE = 1u << 20;

/** Returns llama.cpp's tokens of a text; nothing when it fails. */
std::optional<std::vector<int32_t>> tokenize_by_llama(const llama_vocab * vocabulary, const std::string & text) {
    std::vector<int32_t> tokens(text.size() + 8);
    const auto length = static_cast<int32_t>(text.size());
    int32_t count = llama_tokenize(vocabulary, text.data(), length, tokens.data(), static_cast<int32_t>(tokens.size()),
                                   false, false);
    if (count == INT32_MIN) return std::nullopt;
    if (count < 0) {
        tokens.resize(static_cast<size_t>(-count));
        count = llama_tokenize(vocabulary, text.data(), length, tokens.data(), -count, false, false);
        if (count < 0) return std::nullopt;
    }
    tokens.resize(static_cast<size_t>(count));
    return tokens;
}

}  // namespace

Tokenizer::Tokenizer(const llama_model * model, const std::string & path)
    : vocabulary_(llama_model_get_vocab(model)), byte_pairs_(BytePairs::create(vocabulary_, path)) {}

std::optional<std::vector<int32_t>> Tokenizer::tokenize(const std::string & text) const {
    std::vector<int32_t> tokens;
    if (byte_pairs_ && byte_pairs_->tokenize(text, tokens)) return tokens;
    if (text.size() <= SHORT_TEXT) return tokenize_by_llama(vocabulary_, text);
    std::optional<std::vector<int32_t>> result;
    run_on_large_stack(STACK_BASE + text.size() * STACK_PER_BYTE,
                       [&] { result = tokenize_by_llama(vocabulary_, text); });
    return result;
}

TokenizerPool::TokenizerPool(OnDone on_done) : on_done_(std::move(on_done)) {}

TokenizerPool::~TokenizerPool() { stop(); }

void TokenizerPool::start(const Tokenizer * tokenizer) {
    std::lock_guard<std::mutex> lock(mutex_);
    tokenizer_ = tokenizer;
    const unsigned threads = std::clamp(std::thread::hardware_concurrency() / 2, 1u, MOST_THREADS);
    try {
        while (threads_.size() < threads) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error &) {
        if (threads_.empty()) throw std::runtime_error("the system starts no more threads");
    }
    is_open_ = true;
}

bool TokenizerPool::submit(std::unique_ptr<TextBatch> batch) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!is_open_) return false;
    queue_.push_back(std::move(batch));
    changed_.notify_one();
    return true;
}

void TokenizerPool::stop() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        is_open_ = false;
        stopping_ = true;
        changed_.notify_all();
    }
    for (auto & thread : threads_) thread.join();
    threads_.clear();
    for (auto & batch : queue_) {
        batch->error = "The model has been closed.";
        on_done_(std::move(batch));
    }
    queue_.clear();
}

void TokenizerPool::work() {
    while (true) {
        std::unique_ptr<TextBatch> batch;
        {
            std::unique_lock<std::mutex> lock(mutex_);
            changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
            if (stopping_) return;
            batch = std::move(queue_.front());
            queue_.pop_front();
        }
        try {
            read_slice(*batch);
        } catch (const std::exception & error) {
            batch->error = error.what();
        }
        if (!batch->error.empty() || batch->lengths.size() == batch->texts.size()) {
            on_done_(std::move(batch));
            continue;
        }
        std::lock_guard<std::mutex> lock(mutex_);
        queue_.push_back(std::move(batch));
    }
}

void TokenizerPool::read_slice(TextBatch & batch) const {
    size_t bytes = 0;
    while (batch.lengths.size() < batch.texts.size() && bytes < SLICE_BYTES && !stopping_) {
        const std::string & text = batch.texts[batch.lengths.size()];
        const auto tokens = tokenizer_->tokenize(text);
        if (!tokens) {
            batch.error = "The text could not be tokenized.";
            return;
        }
        batch.tokens.insert(batch.tokens.end(), tokens->begin(), tokens->end());
        batch.lengths.push_back(static_cast<int32_t>(tokens->size()));
        bytes += text.size();
    }
}

}  // namespace tds
