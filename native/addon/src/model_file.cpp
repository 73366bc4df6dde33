#include "model_file.hpp"

#include <mutex>
#include <stdexcept>

namespace tds {

namespace {

/** llama.cpp says why it refuses a file only in its log: while this lives, its first complaint is kept. */
class Complaint {
  public:
    Complaint() {
        llama_log_get(&callback_, &data_);
        llama_log_set(keep, this);
    }
    ~Complaint() { llama_log_set(callback_, data_); }
    Complaint(const Complaint &) = delete;
    Complaint & operator=(const Complaint &) = delete;

    std::string text() {
        std::lock_guard<std::mutex> lock(mutex_);
        return text_.substr(0, text_.find('\n'));
    }

  private:
    static void keep(ggml_log_level level, const char * text, void * data) {
        auto & complaint = *static_cast<Complaint *>(data);
        std::lock_guard<std::mutex> lock(complaint.mutex_);
        if (level == GGML_LOG_LEVEL_ERROR && complaint.text_.empty()) complaint.text_ = text;
    }

    ggml_log_callback callback_ = nullptr;
    void * data_ = nullptr;
    std::mutex mutex_;
    std::string text_;
};

}  // namespace

llama_model * load_model_file(const std::string & path, const llama_model_params & params) {
    Complaint complaint;
    llama_model * model = llama_model_load_from_file(path.c_str(), params);
    if (model) return model;
    const std::string reason = complaint.text();
    throw std::runtime_error(reason.empty() ? "the weights could not be loaded" : reason);
}

}  // namespace tds
