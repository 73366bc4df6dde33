#include "model_file.hpp"

#include <stdexcept>

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

}  // namespace tds
