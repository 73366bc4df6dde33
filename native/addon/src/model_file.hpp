#pragma once

#include <string>

#include "llama.h"

namespace tds {

/**
 * Loads a GGUF file, or a split one by its first part; `llama_model_free` frees it. The caller has loaded the backends
 * and holds their mutex. Throws std::runtime_error with llama.cpp's reason, or if the file has no vocabulary.
 */
llama_model * load_model_file(const std::string & path, const llama_model_params & params);

/** Returns true if all 8-bit and smaller matrices of a GGUF file, or of a first part, are in Q8_0, and there is one. */
bool has_only_q8_weights(const std::string & path);

}  // namespace tds
