#pragma once

#include <cstdint>
#include <vector>

#include "decode_batch.hpp"
#include "ggml-backend.h"
#include "ggml.h"
#include "llama.h"
#include "output_matrix.hpp"

namespace tds {

/**
 * Takes the wanted logits out of one context's decodes. Where the logits are a plain product with the output matrix,
 * the graph is stopped before that product, and only the wanted rows are multiplied; elsewhere llama.cpp computes them.
 * Used by the inference thread alone.
 */
class Readout {
  public:
    /** `output_matrix` must outlive this. */
    Readout(const llama_model * model, OutputMatrix & output_matrix);
    Readout(const Readout &) = delete;
    Readout & operator=(const Readout &) = delete;

    /** Makes the context tell this what its graphs compute. This must outlive the context, and not move. */
    void observe(llama_context_params & params);
    /** To be called after the first decode: decides whether later graphs are stopped. */
    void learn();

    /** The device that the output matrix is on; null where the logits are more than a product with it. */
    ggml_backend_dev_t device() const;
    /** Whether the decode that is done gave so many hidden states, where it should. */
    bool has_states(size_t count) const;
    /** Writes the logits of the batch's reads into their tasks, after the decode. Throws std::runtime_error. */
    void read(llama_context * context, const DecodeBatch & batch) const;

  private:
    static bool on_node(ggml_tensor * node, bool ask, void * readout);
    void inspect_output(const ggml_tensor * node);
    void read_context(llama_context * context, const DecodeBatch & batch) const;
    void read_hidden(const DecodeBatch & batch) const;

    const int32_t embedding_;
    const int32_t vocabulary_;
    OutputMatrix & shared_matrix_;
    /** What the logits are made with, and whether they are a plain product with it. */
    const ggml_tensor * matrix_ = nullptr;
    bool is_plain_product_ = false;
    bool stops_at_hidden_ = false;
    /** Hidden states that the last graph stopped at. */
    std::vector<float> hidden_;
};

}  // namespace tds
