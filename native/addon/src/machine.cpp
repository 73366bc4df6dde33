#include "machine.hpp"

#include <cstring>

namespace tds {

namespace {

/** Returns true if ggml has its buffer type for AMX matrices, which exists only if it may use AMX. */
bool has_amx_buffers() {
    auto * extra_types = cpu_function<ggml_backend_dev_get_extra_bufts_t>("ggml_backend_dev_get_extra_bufts");
    if (!extra_types) return false;
    ggml_backend_buffer_type_t * types = extra_types(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
    for (; types && *types; types++) {
        if (std::strcmp(ggml_backend_buft_name(*types), "AMX") == 0) return true;
    }
    return false;
}

}  // namespace

MachineFacts inspect_machine(const BackendOptions & options) {
    std::lock_guard<std::mutex> lock(backends_mutex());
    load_backends(options);
    ggml_backend_dev_t gpu = options.gpu.empty() ? nullptr : find_gpu();
    MachineFacts facts;
    facts.device = backend_name(gpu);
    ggml_backend_dev_t device = gpu ? gpu : ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device) facts.description = ggml_backend_dev_description(device);
    if (!gpu && !options.gpu.empty()) facts.missing_gpu = missing_gpu(options);
    if (!gpu) facts.kernels = best_instructions();
    facts.uses_amx = !gpu && has_amx_buffers();
    return facts;
}

}  // namespace tds
