#include "matmul_backend.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "q8_matmul.hpp"

namespace tds {

namespace {

/** One column takes another kernel elsewhere too; the lanes never ask for one alone. */
constexpr int64_t COLUMNS_MIN = 2;

/** A product that is part of a graph, with its operands in their packed form. */
struct Product {
    const q8::Weights * weights;
    q8::Activations * activations;
    const ggml_tensor * values;
    ggml_tensor * result;
    /** Whether these activations are not yet those of an earlier product. */
    bool is_first;
};

size_t share(size_t count, int thread, int threads) {
    return count * static_cast<size_t>(thread) / static_cast<size_t>(threads);
}

void quantize(const Product & product, int thread, int threads) {
    const size_t tiles = product.activations->tiles();
    for (size_t tile = share(tiles, thread, threads); tile < share(tiles, thread + 1, threads); tile++) {
        product.activations->quantize(static_cast<const float *>(product.values->data), product.values->nb[1], tile);
    }
}

void multiply(const Product & product, int thread, int threads) {
    const size_t tiles = product.weights->rows() / q8::ROWS;
    q8::multiply(*product.weights, share(tiles, thread, threads), share(tiles, thread + 1, threads),
                 *product.activations, static_cast<float *>(product.result->data), product.result->nb[1]);
}

template <void (*Work)(const Product &, int, int)>
void as_operation(ggml_tensor *, int thread, int threads, void * product) {
    Work(*static_cast<const Product *>(product), thread, threads);
}

}  // namespace

struct MatmulBackend::State {
    int threads = 1;
    /** Runs work on the engine's threads; null for one thread. */
    ggml_backend_t cpu = nullptr;
    std::unordered_map<const void *, q8::Weights> weights;
    std::vector<q8::Activations> activations;
    ggml_backend_reg registry = {};
    ggml_backend_device device = {};

    ~State() {
        if (cpu) ggml_backend_free(cpu);
    }

    const q8::Weights & packed(const ggml_tensor * tensor) {
        const auto found = weights.find(tensor->data);
        if (found != weights.end()) return found->second;
        q8::Weights made(tensor->data, static_cast<size_t>(tensor->ne[1]), static_cast<size_t>(tensor->ne[0]));
        return weights.emplace(tensor->data, std::move(made)).first->second;
    }

    /** The products of a graph; those with the same activations in a row share their packed form. */
    std::vector<Product> products(const ggml_cgraph * graph) {
        std::vector<Product> found;
        size_t used = 0;
        for (int i = 0; i < ggml_graph_n_nodes(const_cast<ggml_cgraph *>(graph)); i++) {
            ggml_tensor * node = ggml_graph_node(const_cast<ggml_cgraph *>(graph), i);
            if (node->op != GGML_OP_MUL_MAT || (node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0) continue;
            const bool is_first = found.empty() || found.back().values != node->src[1];
            if (is_first && used++ == activations.size()) activations.emplace_back();
            found.push_back({&packed(node->src[0]), nullptr, node->src[1], node, is_first});
        }
        size_t next = 0;
        for (Product & product : found) {
            if (product.is_first) {
                activations[next++].resize(static_cast<size_t>(product.values->ne[1]),
                                           static_cast<size_t>(product.values->ne[0]));
            }
            product.activations = &activations[next - 1];
        }
        return found;
    }

    ggml_status compute(const ggml_cgraph * graph) {
        try {
            std::vector<Product> work = products(graph);
            if (work.empty()) return GGML_STATUS_SUCCESS;
            if (cpu) return compute_on_threads(work);
            for (const Product & product : work) {
                if (product.is_first) quantize(product, 0, 1);
                multiply(product, 0, 1);
            }
            return GGML_STATUS_SUCCESS;
        } catch (const std::bad_alloc &) {
            return GGML_STATUS_ALLOC_FAILED;
        }
    }

    /** ggml waits for all threads between two nodes of a graph, which is what the work needs. */
    ggml_status compute_on_threads(std::vector<Product> & work) {
        const size_t nodes = 2 * work.size();
        ggml_init_params params = {nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false), nullptr, true};
        std::unique_ptr<ggml_context, void (*)(ggml_context *)> context(ggml_init(params), ggml_free);
        if (!context) return GGML_STATUS_ALLOC_FAILED;
        ggml_cgraph * graph = ggml_new_graph_custom(context.get(), nodes, false);
        float nothing = 0;
        const auto add = [&](ggml_custom_op_t operation, Product & product) {
            ggml_tensor * node = ggml_custom_4d(context.get(), GGML_TYPE_F32, 1, 1, 1, 1, nullptr, 0, operation,
                                                GGML_N_TASKS_MAX, &product);
            node->data = &nothing;
            ggml_build_forward_expand(graph, node);
        };
        for (Product & product : work) {
            if (product.is_first) add(as_operation<quantize>, product);
            add(as_operation<multiply>, product);
        }
        return ggml_backend_graph_compute(cpu, graph);
    }
};

namespace {

const char * name(ggml_backend_t) { return "tds"; }
const char * device_name(ggml_backend_dev_t) { return "tds"; }
const char * device_description(ggml_backend_dev_t) { return "products of 8-bit weights"; }
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
                   ggml_is_matrix(values) && values->nb[0] == sizeof(float) && operation->ne[1] >= COLUMNS_MIN;
        }
        default:
            return false;
    }
}

ggml_guid_t guid() {
    static ggml_guid id = {0x74, 0x64, 0x73, 0x2d, 0x71, 0x38, 0x2d, 0x6d, 0x61, 0x74, 0x6d, 0x75, 0x6c, 0x2d, 0x30, 0x31};
    return &id;
}

}  // namespace

MatmulBackend::MatmulBackend(std::unique_ptr<State> state) : state_(std::move(state)) {}
MatmulBackend::~MatmulBackend() = default;

std::unique_ptr<MatmulBackend> MatmulBackend::create(int threads, ggml_threadpool_t pool) {
    if (!q8::is_supported()) return nullptr;
    auto state = std::make_unique<State>();
    state->threads = threads;
    if (threads > 1) {
        state->cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
        if (!state->cpu) return nullptr;
        ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(ggml_backend_get_device(state->cpu));
        const auto function = [&](const char * wanted) { return ggml_backend_reg_get_proc_address(registry, wanted); };
        using SetPool = void (*)(ggml_backend_t, ggml_threadpool_t);
        void * set_threads = function("ggml_backend_set_n_threads");
        void * set_pool = function("ggml_backend_cpu_set_threadpool");
        if (!set_threads || !set_pool) return nullptr;
        reinterpret_cast<ggml_backend_set_n_threads_t>(set_threads)(state->cpu, threads);
        if (pool) reinterpret_cast<SetPool>(set_pool)(state->cpu, pool);
    }

    state->device.iface.get_name = device_name;
    state->device.iface.get_description = device_description;
    state->device.iface.get_memory = no_memory;
    state->device.iface.get_type = device_type;
    state->device.iface.get_props = device_props;
    state->device.iface.get_buffer_type = buffer_type;
    state->device.iface.supports_op = supports_operation;
    state->device.iface.supports_buft = supports_buffer;
    state->device.iface.init_backend = [](ggml_backend_dev_t device, const char *) -> ggml_backend_t {
        auto * backend = new ggml_backend();
        backend->guid = guid();
        backend->device = device;
        backend->context = device->context;
        backend->iface.get_name = name;
        backend->iface.free = [](ggml_backend_t freed) { delete freed; };
        backend->iface.graph_compute = [](ggml_backend_t self, ggml_cgraph * graph) {
            return static_cast<State *>(self->context)->compute(graph);
        };
        return backend;
    };
    state->device.context = state.get();
    state->device.reg = &state->registry;

    state->registry.api_version = GGML_BACKEND_API_VERSION;
    state->registry.context = state.get();
    state->registry.iface.get_name = registry_name;
    state->registry.iface.get_device_count = [](ggml_backend_reg_t) -> size_t { return 1; };
    state->registry.iface.get_device = [](ggml_backend_reg_t self, size_t) -> ggml_backend_dev_t {
        return &static_cast<State *>(self->context)->device;
    };
    state->registry.iface.get_proc_address = [](ggml_backend_reg_t, const char *) -> void * { return nullptr; };
    return std::unique_ptr<MatmulBackend>(new MatmulBackend(std::move(state)));
}

namespace {

/** Two engines that open at once must not get each other's device. */
std::mutex & offers() {
    static std::mutex mutex;
    return mutex;
}

}  // namespace

MatmulBackend::Offer::Offer(MatmulBackend & backend) : backend_(backend) {
    offers().lock();
    ggml_backend_register(&backend_.state_->registry);
}

MatmulBackend::Offer::~Offer() {
    ggml_backend_unload(&backend_.state_->registry);
    offers().unlock();
}

}  // namespace tds
