#include "output_matrix.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "backends.hpp"
#include "kernel_backend.hpp"
#include "memory.hpp"

namespace tds {

namespace {

/** ggml uses another kernel if the number of rows is no multiple of this. */
constexpr size_t ROWS_MULTIPLE = 16;

}  // namespace

OutputMatrix::OutputMatrix() : backend_(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr)) {
    if (!backend_) throw std::runtime_error("there is no CPU backend");
    // One thread finishes a few rows before others would have started.
    auto * set_threads = cpu_function<ggml_backend_set_n_threads_t>("ggml_backend_set_n_threads");
    if (set_threads) set_threads(backend_, 1);
}

OutputMatrix::~OutputMatrix() { ggml_backend_free(backend_); }

bool OutputMatrix::can_read(const ggml_tensor * matrix) {
    if (!matrix || !matrix->buffer || !ggml_is_contiguous(matrix)) return false;
    // A repacked matrix interleaves its rows. Only plain host memory and device memory keep rows apart.
    if (ggml_backend_buffer_is_host(matrix->buffer)) return true;
    ggml_backend_dev_t device = ggml_backend_buft_get_device(ggml_backend_buffer_get_type(matrix->buffer));
    return device && ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU;
}

/** Copies the matrix's rows of the tokens. Excess rows repeat the first one. */
void OutputMatrix::copy_rows(const std::vector<int32_t> & tokens, ggml_tensor * rows) const {
    const size_t row_size = rows->nb[1];
    for (size_t i = 0; i < static_cast<size_t>(rows->ne[1]); i++) {
        const auto token = static_cast<size_t>(tokens[i < tokens.size() ? i : 0]);
        ggml_backend_tensor_get(matrix_, static_cast<char *>(rows->data) + i * row_size, token * matrix_->nb[1],
                                row_size);
    }
}

std::vector<float> OutputMatrix::logits(const std::vector<float> & hidden, size_t count,
                                        const std::vector<int32_t> & tokens) {
    // Rows and columns are padded, so that a logit's bits do not depend on other reads.
    const size_t columns = std::max<size_t>(count, KernelBackend::COLUMNS_MIN);
    const size_t padded_rows = round_up(tokens.size(), ROWS_MULTIPLE);
    const int64_t embedding = matrix_->ne[0];

    constexpr size_t graph_nodes = 4;
    ggml_init_params params = {3 * ggml_tensor_overhead() + ggml_graph_overhead_custom(graph_nodes, false), nullptr, true};
    std::unique_ptr<ggml_context, void (*)(ggml_context *)> context(ggml_init(params), ggml_free);
    if (!context) throw std::runtime_error("out of memory");
    ggml_tensor * rows = ggml_new_tensor_2d(context.get(), matrix_->type, embedding, static_cast<int64_t>(padded_rows));
    ggml_tensor * states = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, embedding, static_cast<int64_t>(columns));
    ggml_tensor * product = ggml_mul_mat(context.get(), rows, states);
    ggml_cgraph * graph = ggml_new_graph_custom(context.get(), graph_nodes, false);
    ggml_build_forward_expand(graph, product);
    std::unique_ptr<ggml_backend_buffer, void (*)(ggml_backend_buffer_t)> buffer(
        ggml_backend_alloc_ctx_tensors(context.get(), backend_), ggml_backend_buffer_free);
    if (!buffer) throw std::runtime_error("out of memory");

    copy_rows(tokens, rows);
    const size_t state_size = static_cast<size_t>(embedding) * sizeof(float);
    std::memcpy(states->data, hidden.data(), count * state_size);
    for (size_t i = count; i < columns; i++) {
        std::memcpy(static_cast<char *>(states->data) + i * state_size, hidden.data(), state_size);
    }

    if (ggml_backend_graph_compute(backend_, graph) != GGML_STATUS_SUCCESS) {
        throw std::runtime_error("the output rows could not be multiplied");
    }
    std::vector<float> result(count * tokens.size());
    const auto * values = static_cast<const float *>(product->data);
    for (size_t i = 0; i < count; i++) {
        std::memcpy(result.data() + i * tokens.size(), values + i * padded_rows, tokens.size() * sizeof(float));
    }
    return result;
}

}  // namespace tds
