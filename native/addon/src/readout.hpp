#pragma once

#include <cstdint>
#include <vector>

#include "decode_batch.hpp"
#include "ggml-backend.h"
#include "ggml.h"
#include "llama.h"
#include "output_matrix.hpp"

namespace tds {

/** llama.cpp's name of the logits. */
constexpr const char * LOGITS_NODE = "result_output";

/**
 * Reads the wanted logits of one context's decodes. If the logits are a plain product with the output matrix, the graph
 * stops before it and only the wanted rows are multiplied. Otherwise llama.cpp computes them. Used by the inference
 * thread alone.
 */
class Readout {
  public:
    /** `output_matrix` must outlive this. */
    Readout(const llama_model * model, OutputMatrix & output_matrix);
    Readout(const Readout &) = delete;
    Readout & operator=(const Readout &) = delete;

    /** Registers this for the nodes of the context's graphs. It must outlive the context, and not move. */
    void observe(llama_context_params & params);
    /** Decides, after the first decode, if later graphs are stopped. */
    void learn();
    /** Returns true if later graphs stop before the logits. If false, llama.cpp computes them too. */
    bool stops_at_hidden() const { return stops_at_hidden_; }
    /**
     * Returns the number of operations before the logits whose bits would depend on the number of rows if ggml computed
     * them.
     */
    size_t size_dependent_operations() const { return size_dependent_operations_; }

    /** Returns the device of the output matrix; null if the logits are more than a product with it. */
    ggml_backend_dev_t device() const;
    /** Returns true if the last decode gave this many hidden states, or if it need not. */
    bool has_states(size_t count) const;
    /** Writes the logits of the batch's reads into their tasks, after the decode. Throws std::runtime_error. */
    void read(llama_context * context, const DecodeBatch & batch) const;

  private:
    static bool on_node(ggml_tensor * node, bool ask, void * readout);
    void inspect(const ggml_tensor * node);
    void read_context(llama_context * context, const DecodeBatch & batch) const;
    void read_hidden(const DecodeBatch & batch) const;

    const int32_t embedding_;
    const int32_t vocabulary_;
    OutputMatrix & shared_matrix_;
    /** The output matrix. The logits may be a plain product with it. */
    const ggml_tensor * matrix_ = nullptr;
    bool is_plain_product_ = false;
    bool stops_at_hidden_ = false;
    bool has_learned_ = false;
    /** Counted in the first decode. */
    size_t size_dependent_operations_ = 0;
    /** The hidden states at which the last graph stopped. */
    std::vector<float> hidden_;
};

}  // namespace tds
