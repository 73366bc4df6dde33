#include "model_tokenizer.hpp"

#include <exception>

#include "model_file.hpp"

namespace tds {

ModelTokenizer::ModelTokenizer(BackendOptions backends, std::string model_path, OnLoaded on_loaded,
                               OnTokenized on_tokenized, OnClosed on_closed)
    : backends_(std::move(backends)),
      model_path_(std::move(model_path)),
      on_loaded_(std::move(on_loaded)),
      on_closed_(std::move(on_closed)),
      pool_(std::move(on_tokenized)),
      thread_([this] { run(); }) {}

ModelTokenizer::~ModelTokenizer() {
    close();
    thread_.join();
}

void ModelTokenizer::close() {
    std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    changed_.notify_one();
}

void ModelTokenizer::run() {
    TokenizerFacts facts;
    try {
        load(facts);
    } catch (const std::exception & error) {
        facts.error = error.what();
    }
    on_loaded_(facts);
    if (facts.error.empty()) {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return closing_; });
    }
    pool_.stop();
    tokenizer_.reset();
    if (model_) llama_model_free(model_);
    on_closed_();
}

void ModelTokenizer::load(TokenizerFacts & facts) {
    std::lock_guard<std::mutex> lock(backends_mutex());
    load_backends(backends_);
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    params.n_gpu_layers = 0;
    ggml_backend_dev_t no_devices[] = {nullptr};
    params.devices = no_devices;
    model_ = load_model_file(model_path_, params);
    tokenizer_ = std::make_unique<Tokenizer>(model_, model_path_);
    pool_.start(tokenizer_.get());
    const auto metadata = [&](const char * key) -> std::string {
        char value[64];
        return llama_model_meta_val_str(model_, key, value, sizeof(value)) < 0 ? "" : value;
    };
    facts.tokenizer_model = metadata("tokenizer.ggml.model");
    facts.pre_tokenizer = metadata("tokenizer.ggml.pre");
}

}  // namespace tds
