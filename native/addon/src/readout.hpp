#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"

namespace tds {

/**
 * Logits of the wanted tokens only. llama.cpp multiplies every hidden state that is read with the whole vocabulary;
 * a decision looks at two rows of it. The rows are multiplied by ggml's own kernel, so the logits are those that
 * llama.cpp would have given.
 */
class Readout {
  public:
    Readout();
    ~Readout();
    Readout(const Readout &) = delete;
    Readout & operator=(const Readout &) = delete;

    /** Whether `output`, the model's output matrix, can be read row by row. */
    static bool can_read(const ggml_tensor * output);

    void set_output(const ggml_tensor * output) { output_ = output; }

    /**
     * Logits of `tokens` for each of `count` hidden states (`count` × embedding floats): `count` × tokens, row-major.
     * Throws std::runtime_error when memory is short.
     */
    std::vector<float> logits(const std::vector<float> & hidden, size_t count, const std::vector<int32_t> & tokens);

  private:
    ggml_backend_t backend_ = nullptr;
    const ggml_tensor * output_ = nullptr;
};

}  // namespace tds
