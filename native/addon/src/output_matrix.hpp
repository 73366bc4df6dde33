#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"

namespace tds {

/**
 * Products of hidden states with the wanted rows of the model's output matrix, one row a token. llama.cpp multiplies
 * every hidden state with all rows, the whole vocabulary. A decision needs two of them. ggml's kernel multiplies the
 * rows, so the logits are those of llama.cpp. Used by the inference thread alone.
 */
class OutputMatrix {
  public:
    /** Throws std::runtime_error when there is no CPU backend. */
    OutputMatrix();
    ~OutputMatrix();
    OutputMatrix(const OutputMatrix &) = delete;
    OutputMatrix & operator=(const OutputMatrix &) = delete;

    /** Returns true if `matrix` can be read row by row. */
    static bool can_read(const ggml_tensor * matrix);

    void set_matrix(const ggml_tensor * matrix) { matrix_ = matrix; }

    /**
     * Returns the logits of `tokens` for each of `count` hidden states (`count` × embedding floats): `count` × tokens,
     * row-major. Throws std::runtime_error when memory is short.
     */
    std::vector<float> logits(const std::vector<float> & hidden, size_t count, const std::vector<int32_t> & tokens);

  private:
    void copy_rows(const std::vector<int32_t> & tokens, ggml_tensor * rows) const;

    ggml_backend_t backend_ = nullptr;
    const ggml_tensor * matrix_ = nullptr;
};

}  // namespace tds
