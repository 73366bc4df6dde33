#include "model_file.hpp"

#include <stdexcept>

#include "llama_log.hpp"

namespace tds {

llama_model * load_model_file(const std::string & path, const llama_model_params & params) {
    const FirstLoggedError error;
    llama_model * model = llama_model_load_from_file(path.c_str(), params);
    if (model) return model;
    const std::string reason = error.text();
    throw std::runtime_error(reason.empty() ? "the weights could not be loaded" : reason);
}

}  // namespace tds
