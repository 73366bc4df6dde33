#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "backends.hpp"
#include "llama.h"
#include "tokenizer.hpp"

namespace tds {

/** The facts of a loaded vocabulary. `error` is empty on success. */
struct TokenizerFacts {
    std::string error;
    /** GGUF's `tokenizer.ggml.model` and `tokenizer.ggml.pre`; empty if the file has none. */
    std::string tokenizer_model;
    std::string pre_tokenizer;
};

/** The tokenizer of a model file. It loads only the vocabulary, so that it can outlive the evaluator. */
class ModelTokenizer {
  public:
    using OnLoaded = std::function<void(const TokenizerFacts &)>;
    using OnTokenized = TokenizerPool::OnDone;
    using OnClosed = std::function<void()>;

    /**
     * Starts loading. Throws std::system_error when no thread can be started. The tokenizer's thread calls `on_loaded`
     * once and `on_closed` last. Any thread calls `on_tokenized`, once for each batch.
     */
    ModelTokenizer(BackendOptions backends, std::string model_path, OnLoaded on_loaded, OnTokenized on_tokenized,
                   OnClosed on_closed);
    /** Closes and waits for the thread. */
    ~ModelTokenizer();
    ModelTokenizer(const ModelTokenizer &) = delete;
    ModelTokenizer & operator=(const ModelTokenizer &) = delete;

    /** Any thread. `on_tokenized` gets every accepted batch exactly once. Returns false unless a model is loaded. */
    bool tokenize_all(std::unique_ptr<TextBatch> batch) { return pool_.submit(std::move(batch)); }
    /** Any thread. Unfinished work fails. */
    void close();

  private:
    void run();
    void load(TokenizerFacts & facts);

    const BackendOptions backends_;
    const std::string model_path_;
    const OnLoaded on_loaded_;
    const OnClosed on_closed_;

    std::mutex mutex_;
    std::condition_variable changed_;
    bool closing_ = false;

    llama_model * model_ = nullptr;
    std::unique_ptr<Tokenizer> tokenizer_;
    TokenizerPool pool_;
    std::thread thread_;
};

}  // namespace tds
