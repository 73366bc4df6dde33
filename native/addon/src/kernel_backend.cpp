#include "kernel_backend.hpp"

#include <cstring>
#include <functional>
#include <new>
#include <unordered_map>
#include <vector>

#include "attention.hpp"
#include "backends.hpp"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "q8_matmul.hpp"
#include "readout.hpp"

namespace tds {

namespace {

/** One step of a graph. All threads run it at once, each with its own number. */
using Step = std::function<void(int thread, int threads)>;

/** Returns the first of `count` items of a thread. Its items end before the next thread's first one. */
size_t share(size_t count, int thread, int threads) {
    return count * static_cast<size_t>(thread) / static_cast<size_t>(threads);
}

void run_step(ggml_tensor *, int thread, int threads, void * step) { (*static_cast<Step *>(step))(thread, threads); }

/** Returns one of the operation's float parameters. */
float parameter(const ggml_tensor * node, size_t index) {
    float value = 0;
    std::memcpy(&value, node->op_params + index, sizeof(value));
    return value;
}

attention::Operands attention_operands(const ggml_tensor * node) {
    const ggml_tensor * queries = node->src[0];
    const ggml_tensor * keys = node->src[1];
    const ggml_tensor * values = node->src[2];
    const ggml_tensor * mask = node->src[3];
    attention::Operands operands;
    operands.head_size = static_cast<size_t>(queries->ne[0]);
    operands.rows = static_cast<size_t>(queries->ne[1]);
    operands.cells = static_cast<size_t>(keys->ne[1]);
    operands.heads = static_cast<size_t>(queries->ne[2]);
    operands.cache_heads = static_cast<size_t>(keys->ne[2]);
    operands.scale = parameter(node, 0);
    operands.queries = static_cast<const char *>(queries->data);
    operands.query_row_stride = queries->nb[1];
    operands.query_head_stride = queries->nb[2];
    operands.keys = static_cast<const char *>(keys->data);
    operands.key_cell_stride = keys->nb[1];
    operands.key_head_stride = keys->nb[2];
    operands.values = static_cast<const char *>(values->data);
    operands.value_cell_stride = values->nb[1];
    operands.value_head_stride = values->nb[2];
    operands.mask = static_cast<const char *>(mask->data);
    operands.mask_row_stride = mask->nb[1];
    operands.result = static_cast<char *>(node->data);
    operands.result_row_stride = node->nb[2];
    operands.result_head_stride = node->nb[1];
    return operands;
}

}  // namespace

struct KernelBackend::State {
    State(Instructions with, const q8::Kernel & kernel_of_them) : instructions(with), kernel(kernel_of_them) {}

    const Instructions instructions;
    const q8::Kernel & kernel;
    /** Runs steps on the decoders' threads; null if there is never more than one. */
    ggml_backend_t cpu = nullptr;
    int threads = 1;
    ggml_backend_set_n_threads_t set_cpu_threads = nullptr;
    void (*set_cpu_pool)(ggml_backend_t, ggml_threadpool_t) = nullptr;
    LargePages pages;
    std::unordered_map<const void *, q8::Weights> weights;
    /** Reused from graph to graph. The current graph uses the first `activations_used`. */
    std::vector<std::unique_ptr<q8::Activations>> activations;
    size_t activations_used = 0;
    /** The tensor from which the last of them were quantized, all in the layout of `kernel`. */
    const ggml_tensor * quantized = nullptr;
    /** One for each thread. */
    std::vector<attention::Scratch> scratches;
    /** Counted by each kernel. */
    size_t computed = 0;
    ggml_backend_reg registry = {};
    ggml_backend_device device = {};

    ~State() {
        if (cpu) ggml_backend_free(cpu);
    }

    /** Creates ggml's CPU backend, to run steps. Returns false if it cannot. */
    bool start_cpu();
    /** Fills in ggml's interface of a device and its registry. */
    void describe_device();
    void describe_registry();

    /** Returns the tensor's weights, packed at the first call. */
    const q8::Weights & packed(const ggml_tensor * tensor) {
        const auto found = weights.find(tensor->data);
        if (found != weights.end()) return found->second;
        q8::Weights made(kernel, tensor->data, static_cast<size_t>(tensor->ne[1]), static_cast<size_t>(tensor->ne[0]),
                         pages);
        return weights.emplace(tensor->data, std::move(made)).first->second;
    }

    void add_product(const ggml_tensor * node, std::vector<Step> & steps) {
        computed++;
        const ggml_tensor * values = node->src[1];
        // Consecutive products often have the same activations, which are quantized once.
        if (quantized != values) {
            quantized = values;
            if (activations_used == activations.size()) activations.push_back(std::make_unique<q8::Activations>(kernel));
            q8::Activations & made = *activations[activations_used++];
            made.resize(static_cast<size_t>(values->ne[1]), static_cast<size_t>(values->ne[0]));
            steps.push_back([&made, values](int thread, int threads) {
                for (size_t tile = share(made.tiles(), thread, threads); tile < share(made.tiles(), thread + 1, threads);
                     tile++) {
                    made.quantize(static_cast<const float *>(values->data), values->nb[1], tile);
                }
            });
        }
        steps.push_back([&weights = packed(node->src[0]), &made = *activations[activations_used - 1],
                         node](int thread, int threads) {
            const size_t tiles = weights.rows() / q8::ROWS;
            q8::multiply(weights, share(tiles, thread, threads), share(tiles, thread + 1, threads), made,
                         static_cast<float *>(node->data), node->nb[1]);
        });
    }

    void add_attention(const ggml_tensor * node, std::vector<Step> & steps) {
        computed++;
        steps.push_back([this, operands = attention_operands(node)](int thread, int threads) {
            // Later rows see more cells, so pieces go to the threads in rotation to balance the work.
            for (size_t piece = static_cast<size_t>(thread); piece < attention::pieces(operands);
                 piece += static_cast<size_t>(threads)) {
                attention::compute(instructions, operands, piece, scratches[static_cast<size_t>(thread)]);
            }
        });
    }

    ggml_status compute(ggml_cgraph * graph) {
        try {
            std::vector<Step> steps;
            quantized = nullptr;
            activations_used = 0;
            for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
                const ggml_tensor * node = ggml_graph_node(graph, i);
                if ((node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0) continue;
                if (node->op == GGML_OP_MUL_MAT) add_product(node, steps);
                if (node->op == GGML_OP_FLASH_ATTN_EXT) add_attention(node, steps);
            }
            if (steps.empty()) return GGML_STATUS_SUCCESS;
            if (threads > 1) return run_on_threads(steps);
            for (const Step & step : steps) step(0, 1);
            return GGML_STATUS_SUCCESS;
        } catch (const std::bad_alloc &) {
            return GGML_STATUS_ALLOC_FAILED;
        }
    }

    /**
     * Runs the steps as nodes of a graph, because each needs the whole result of the one before. ggml waits for all
     * threads between two nodes.
     */
    ggml_status run_on_threads(std::vector<Step> & steps) {
        ggml_init_params params = {
            steps.size() * ggml_tensor_overhead() + ggml_graph_overhead_custom(steps.size(), false), nullptr, true};
        std::unique_ptr<ggml_context, void (*)(ggml_context *)> context(ggml_init(params), ggml_free);
        if (!context) return GGML_STATUS_ALLOC_FAILED;
        ggml_cgraph * graph = ggml_new_graph_custom(context.get(), steps.size(), false);
        float nothing = 0;
        for (Step & step : steps) {
            ggml_tensor * node = ggml_custom_4d(context.get(), GGML_TYPE_F32, 1, 1, 1, 1, nullptr, 0, run_step,
                                                GGML_N_TASKS_MAX, &step);
            node->data = &nothing;
            ggml_build_forward_expand(graph, node);
        }
        return ggml_backend_graph_compute(cpu, graph);
    }
};

namespace {

const char * name(ggml_backend_t) { return "tds"; }
const char * device_name(ggml_backend_dev_t) { return "tds"; }
const char * device_description(ggml_backend_dev_t) { return "kernels of the Typed Decision Service"; }
const char * registry_name(ggml_backend_reg_t) { return "tds"; }

void no_memory(ggml_backend_dev_t, size_t * free, size_t * total) { *free = *total = 0; }
enum ggml_backend_dev_type device_type(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_ACCEL; }

void device_props(ggml_backend_dev_t device, ggml_backend_dev_props * props) {
    *props = {};
    props->name = device_name(device);
    props->description = device_description(device);
    props->type = device_type(device);
}

ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t) { return ggml_backend_cpu_buffer_type(); }
bool supports_buffer(ggml_backend_dev_t, ggml_backend_buffer_type_t type) { return ggml_backend_buft_is_host(type); }

bool is_matrix_of_weights(const ggml_tensor * tensor) {
    return tensor->type == GGML_TYPE_Q8_0 && ggml_is_contiguous(tensor) && ggml_is_matrix(tensor) &&
           tensor->ne[1] % static_cast<int64_t>(q8::ROWS) == 0 && tensor->buffer &&
           ggml_backend_buffer_get_usage(tensor->buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
}

/**
 * Returns true if our kernel supports it. ggml computes heads with ALiBi, capped scores or sinks, which decision-1
 * lacks.
 */
bool is_plain_attention(const ggml_tensor * node) {
    const ggml_tensor * queries = node->src[0];
    const ggml_tensor * keys = node->src[1];
    const ggml_tensor * values = node->src[2];
    const ggml_tensor * mask = node->src[3];
    constexpr auto largest = static_cast<int64_t>(attention::SIZE_MAX_OF_HEAD);
    constexpr auto most_sharing = static_cast<int64_t>(attention::SHARING_MAX);
    const int64_t size = queries->ne[0];
    const bool has_types = queries->type == GGML_TYPE_F32 && keys->type == GGML_TYPE_F16 &&
                           values->type == GGML_TYPE_F16 && mask && mask->type == GGML_TYPE_F16;
    return has_types && !node->src[4] && queries->ne[3] == 1 && keys->ne[3] == 1 && mask->ne[2] == 1 &&
           mask->ne[3] == 1 && size % 16 == 0 && size <= largest && keys->ne[0] == size && values->ne[0] == size &&
           queries->ne[2] % keys->ne[2] == 0 && queries->ne[2] / keys->ne[2] <= most_sharing &&
           values->ne[2] == keys->ne[2] && queries->nb[0] == sizeof(float) && keys->nb[0] == sizeof(ggml_fp16_t) &&
           values->nb[0] == sizeof(ggml_fp16_t) && parameter(node, 1) == 0.0f && parameter(node, 2) == 0.0f;
}

/**
 * The product with the output matrix stays on the CPU's device. `Readout` stops a graph before it. A stop ends only the
 * part of the graph on the previous node's device. On ours, the whole vocabulary would still be computed.
 */
bool is_output(const ggml_tensor * operation) { return std::strcmp(operation->name, LOGITS_NODE) == 0; }

bool supports_operation(ggml_backend_dev_t, const ggml_tensor * operation) {
    switch (operation->op) {
        case GGML_OP_NONE:
        case GGML_OP_RESHAPE:
        case GGML_OP_VIEW:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE:
            return true;
        case GGML_OP_MUL_MAT: {
            const ggml_tensor * values = operation->src[1];
            return is_matrix_of_weights(operation->src[0]) && values->type == GGML_TYPE_F32 &&
                   ggml_is_matrix(values) && values->nb[0] == sizeof(float) &&
                   operation->ne[1] >= KernelBackend::COLUMNS_MIN && !is_output(operation);
        }
        case GGML_OP_FLASH_ATTN_EXT:
            return is_plain_attention(operation);
        default:
            return false;
    }
}

ggml_guid_t guid() {
    static ggml_guid id = {0x74, 0x64, 0x73, 0x2d, 0x71, 0x38, 0x2d, 0x6d, 0x61, 0x74, 0x6d, 0x75, 0x6c, 0x2d, 0x30, 0x31};
    return &id;
}

}  // namespace

KernelBackend::KernelBackend(std::unique_ptr<State> state) : state_(std::move(state)) {}
KernelBackend::~KernelBackend() = default;

size_t KernelBackend::computed() const { return state_->computed; }

void KernelBackend::set_threads(int threads, ggml_threadpool_t pool) {
    state_->threads = threads;
    if (threads == 1) return;
    state_->set_cpu_threads(state_->cpu, threads);
    state_->set_cpu_pool(state_->cpu, pool);
}

std::unique_ptr<KernelBackend> KernelBackend::create(Instructions instructions, int threads_max) {
    const q8::Kernel * kernel = q8::kernel_of(instructions);
    if (!kernel) return nullptr;
    auto state = std::make_unique<State>(instructions, *kernel);
    state->scratches.resize(static_cast<size_t>(threads_max));
    if (threads_max > 1 && !state->start_cpu()) return nullptr;
    state->describe_device();
    state->describe_registry();
    return std::unique_ptr<KernelBackend>(new KernelBackend(std::move(state)));
}

bool KernelBackend::State::start_cpu() {
    cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
    set_cpu_threads = cpu_function<ggml_backend_set_n_threads_t>("ggml_backend_set_n_threads");
    set_cpu_pool = cpu_function<decltype(set_cpu_pool)>("ggml_backend_cpu_set_threadpool");
    return cpu && set_cpu_threads && set_cpu_pool;
}

void KernelBackend::State::describe_device() {
    device.iface.get_name = device_name;
    device.iface.get_description = device_description;
    device.iface.get_memory = no_memory;
    device.iface.get_type = device_type;
    device.iface.get_props = device_props;
    device.iface.get_buffer_type = buffer_type;
    device.iface.supports_op = supports_operation;
    device.iface.supports_buft = supports_buffer;
    device.iface.init_backend = [](ggml_backend_dev_t own, const char *) -> ggml_backend_t {
        auto * backend = new ggml_backend();
        backend->guid = guid();
        backend->device = own;
        backend->context = own->context;
        backend->iface.get_name = name;
        backend->iface.free = [](ggml_backend_t freed) { delete freed; };
        backend->iface.graph_compute = [](ggml_backend_t self, ggml_cgraph * graph) {
            return static_cast<State *>(self->context)->compute(graph);
        };
        return backend;
    };
    device.context = this;
    device.reg = &registry;
}

void KernelBackend::State::describe_registry() {
    registry.api_version = GGML_BACKEND_API_VERSION;
    registry.context = this;
    registry.iface.get_name = registry_name;
    registry.iface.get_device_count = [](ggml_backend_reg_t) -> size_t { return 1; };
    registry.iface.get_device = [](ggml_backend_reg_t self, size_t) -> ggml_backend_dev_t {
        return &static_cast<State *>(self->context)->device;
    };
    registry.iface.get_proc_address = [](ggml_backend_reg_t, const char *) -> void * { return nullptr; };
}

KernelBackend::Offer::Offer(KernelBackend & backend) : backend_(backend) {
    ggml_backend_register(&backend_.state_->registry);
}

KernelBackend::Offer::~Offer() { ggml_backend_unload(&backend_.state_->registry); }

}  // namespace tds
