#include "model_file.hpp"

#include <mutex>
#include <stdexcept>

namespace tds {

namespace {

/** Keeps the first error of llama.cpp's log while it lives: only the log says why a file is refused. */
class FirstLoggedError {
  public:
    FirstLoggedError() {
        llama_log_get(&callback_, &data_);
        llama_log_set(keep, this);
    }
    ~FirstLoggedError() { llama_log_set(callback_, data_); }
    FirstLoggedError(const FirstLoggedError &) = delete;
    FirstLoggedError & operator=(const FirstLoggedError &) = delete;

    std::string text() {
        std::lock_guard<std::mutex> lock(mutex_);
        return text_.substr(0, text_.find('\n'));
    }

  private:
    static void keep(ggml_log_level level, const char * text, void * data) {
        auto & first = *static_cast<FirstLoggedError *>(data);
        std::lock_guard<std::mutex> lock(first.mutex_);
        if (level == GGML_LOG_LEVEL_ERROR && first.text_.empty()) first.text_ = text;
    }

    ggml_log_callback callback_ = nullptr;
    void * data_ = nullptr;
    std::mutex mutex_;
    std::string text_;
};

}  // namespace

llama_model * load_model_file(const std::string & path, const llama_model_params & params) {
    FirstLoggedError error;
    llama_model * model = llama_model_load_from_file(path.c_str(), params);
    if (model) return model;
    const std::string reason = error.text();
    throw std::runtime_error(reason.empty() ? "the weights could not be loaded" : reason);
}

}  // namespace tds
