#include "readout.hpp"

#include <algorithm>
#include <cstring>

namespace tds {

namespace {

/** llama.cpp's name of the last hidden states. */
constexpr const char * HIDDEN_NODE = "result_norm";

bool is_named(const ggml_tensor * node, const char * name) { return std::strcmp(node->name, name) == 0; }

/** Returns true if ggml computes each row of the result by itself, whatever their number. */
bool is_row_by_row(const ggml_tensor * node) {
    switch (node->op) {
        case GGML_OP_NONE:
        case GGML_OP_VIEW:
        case GGML_OP_RESHAPE:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE:
        case GGML_OP_CONT:
        case GGML_OP_CPY:
        case GGML_OP_GET_ROWS:
        case GGML_OP_SET_ROWS:
        case GGML_OP_ADD:
        case GGML_OP_MUL:
        case GGML_OP_SCALE:
        case GGML_OP_NORM:
        case GGML_OP_RMS_NORM:
        case GGML_OP_ROPE:
        case GGML_OP_UNARY:
        case GGML_OP_GLU:
            return true;
        default:
            return false;
    }
}

/** Returns the distinct token ids of all reads, ascending. */
std::vector<int32_t> wanted_tokens(const std::vector<BatchRead> & reads) {
    std::vector<int32_t> wanted;
    for (const BatchRead & read : reads) {
        wanted.insert(wanted.end(), read.read->tokens.begin(), read.read->tokens.end());
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    return wanted;
}

}  // namespace

Readout::Readout(const llama_model * model, OutputMatrix & output_matrix)
    : embedding_(llama_model_n_embd(model)),
      vocabulary_(llama_vocab_n_tokens(llama_model_get_vocab(model))),
      shared_matrix_(output_matrix) {}

void Readout::observe(llama_context_params & params) {
    params.cb_eval = on_node;
    params.cb_eval_user_data = this;
}

/** ggml calls this twice for a node of a graph: to ask if it is wanted, and with its result. */
bool Readout::on_node(ggml_tensor * node, bool ask, void * data) {
    Readout & readout = *static_cast<Readout *>(data);
    if (ask) {
        if (!readout.has_learned_) readout.inspect(node);
        return readout.stops_at_hidden_ && is_named(node, HIDDEN_NODE);
    }
    readout.hidden_.resize(static_cast<size_t>(ggml_nelements(node)));
    if (!readout.hidden_.empty()) ggml_backend_tensor_get(node, readout.hidden_.data(), 0, ggml_nbytes(node));
    // This ends this part of the graph.
    return false;
}

void Readout::inspect(const ggml_tensor * node) {
    if (!is_named(node, LOGITS_NODE)) {
        size_dependent_operations_ += is_row_by_row(node) ? 0 : 1;
        return;
    }
    matrix_ = node->src[0];
    is_plain_product_ = node->op == GGML_OP_MUL_MAT && node->src[1] && is_named(node->src[1], HIDDEN_NODE) &&
                        matrix_->ne[0] == embedding_ && matrix_->ne[1] == vocabulary_;
}

void Readout::learn() {
    has_learned_ = true;
    stops_at_hidden_ = is_plain_product_ && OutputMatrix::can_read(matrix_);
    if (stops_at_hidden_) shared_matrix_.set_matrix(matrix_);
}

ggml_backend_dev_t Readout::device() const {
    // Otherwise the first operand of the logits is no weight, and is freed with the graph.
    if (!is_plain_product_ || !matrix_->buffer) return nullptr;
    ggml_backend_buffer_type_t type = ggml_backend_buffer_get_type(matrix_->buffer);
    ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
    // The CPU's memory has no device, or names the GPU that it is pinned for.
    const bool is_cpu = !device || type == ggml_backend_dev_host_buffer_type(device);
    return is_cpu ? ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) : device;
}

bool Readout::has_states(size_t count) const {
    return !stops_at_hidden_ || hidden_.size() == count * static_cast<size_t>(embedding_);
}

void Readout::read(llama_context * context, const DecodeBatch & batch) const {
    if (batch.reads().empty()) return;
    if (stops_at_hidden_) {
        read_hidden(batch);
    } else {
        read_context(context, batch);
    }
}

void Readout::read_context(llama_context * context, const DecodeBatch & batch) const {
    for (const BatchRead & at : batch.reads()) {
        const Read & read = *at.read;
        const float * logits = llama_get_logits_ith(context, at.token_index);
        for (size_t i = 0; i < read.tokens.size(); i++) at.task->logits[read.offset + i] = logits[read.tokens[i]];
    }
}

void Readout::read_hidden(const DecodeBatch & batch) const {
    const std::vector<int32_t> wanted = wanted_tokens(batch.reads());
    const std::vector<float> logits = shared_matrix_.logits(hidden_, batch.output_count(), wanted);
    const std::vector<size_t> rows = batch.output_rows();
    for (const BatchRead & at : batch.reads()) {
        const Read & read = *at.read;
        const float * row = logits.data() + rows[static_cast<size_t>(at.token_index)] * wanted.size();
        for (size_t i = 0; i < read.tokens.size(); i++) {
            const auto column = std::lower_bound(wanted.begin(), wanted.end(), read.tokens[i]) - wanted.begin();
            at.task->logits[read.offset + i] = row[column];
        }
    }
}

}  // namespace tds
