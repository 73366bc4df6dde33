#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "byte_pairs.hpp"
#include "llama.h"

namespace tds {

/**
 * Tokenizes text without special tokens: by our byte-pair encoding if it supports the vocabulary, else by llama.cpp.
 */
class Tokenizer {
  public:
    /** `model` must outlive this; `path` is its file. */
    Tokenizer(const llama_model * model, const std::string & path);
    /**
     * Any thread, any length of text. Returns nothing when llama.cpp fails. Throws std::exception when memory is short.
     */
    std::optional<std::vector<int32_t>> tokenize(const std::string & text) const;

  private:
    const llama_vocab * vocabulary_;
    std::unique_ptr<BytePairs> byte_pairs_;
};

/** The texts of a request, and their tokens. */
struct TextBatch {
    uint64_t id = 0;
    std::vector<std::string> texts;
    /** The error, without tokens; empty otherwise. */
    std::string error;
    /** The tokens of all texts, one after the other. */
    std::vector<int32_t> tokens;
    /** The number of tokens of each finished text. */
    std::vector<int32_t> lengths;
};

/**
 * Tokenizes batches on its own threads, first come first served. A long batch goes back to the end of the queue after
 * each slice, so that an ordinary one does not wait for all of it.
 */
class TokenizerPool {
  public:
    using OnDone = std::function<void(std::unique_ptr<TextBatch>)>;

    /** Any thread calls `on_done`, once for each accepted batch. */
    explicit TokenizerPool(OnDone on_done);
    /** Stops. */
    ~TokenizerPool();
    TokenizerPool(const TokenizerPool &) = delete;
    TokenizerPool & operator=(const TokenizerPool &) = delete;

    /** Called once. `tokenizer` must outlive `stop`. Throws std::runtime_error when no thread can be started. */
    void start(const Tokenizer * tokenizer);
    /** Any thread. Returns false before `start` and after `stop`. */
    bool submit(std::unique_ptr<TextBatch> batch);
    /** Fails unfinished batches. The tokenizer is unused when this returns. */
    void stop();

  private:
    void work();
    void read_slice(TextBatch & batch) const;

    const OnDone on_done_;
    const Tokenizer * tokenizer_ = nullptr;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::unique_ptr<TextBatch>> queue_;
    bool is_open_ = false;
    /** Set when the pool stops, so that a running slice ends after its current text. */
    std::atomic<bool> stopping_{false};
    std::vector<std::thread> threads_;
};

}  // namespace tds
