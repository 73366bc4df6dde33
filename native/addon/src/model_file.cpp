#include "model_file.hpp"

#include <memory>
#include <stdexcept>

#include "ggml.h"
#include "gguf.h"
#include "llama_log.hpp"

namespace tds {

llama_model * load_model_file(const std::string & path, const llama_model_params & params) {
    const FirstLoggedError error;
    llama_model * model = llama_model_load_from_file(path.c_str(), params);
    if (!model) {
        const std::string reason = error.text();
        throw std::runtime_error(reason.empty() ? "the weights could not be loaded" : reason);
    }
    // llama.cpp loads such a file, but ends the process at the first text.
    if (llama_vocab_type(llama_model_get_vocab(model)) == LLAMA_VOCAB_TYPE_NONE) {
        llama_model_free(model);
        throw std::runtime_error("the weights have no vocabulary");
    }
    return model;
}

bool has_only_q8_weights(const std::string & path) {
    const std::unique_ptr<gguf_context, void (*)(gguf_context *)> file(gguf_init_from_file(path.c_str(), {}), gguf_free);
    bool has_any = false;
    for (int64_t i = 0; file && i < gguf_get_n_tensors(file.get()); i++) {
        const ggml_type type = gguf_get_tensor_type(file.get(), i);
        if (!ggml_is_quantized(type)) continue;
        if (type != GGML_TYPE_Q8_0) return false;
        has_any = true;
    }
    return has_any;
}

}  // namespace tds
