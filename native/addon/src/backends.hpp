#pragma once

#include <mutex>
#include <string>

#include "ggml-backend.h"

namespace tds {

/** The folders of llama.cpp and ggml's backends, and the wanted GPU. */
struct BackendOptions {
    /** The folder of libllama and of ggml's backends. */
    std::string directory;
    /** A folder with the GPU's backend for other versions of its runtime; empty when there is none. */
    std::string fallback_directory;
    /** `cuda`, `metal` or `vulkan`; empty for the CPU alone. */
    std::string gpu;
};

/**
 * The mutex to hold while backends are loaded or looked up, and while contexts are created. ggml's registry and
 * llama.cpp's log are shared by the whole process, and have no lock. It does not hold off node-llama-cpp, which
 * `native/evaluators/` never lets load meanwhile.
 */
std::mutex & backends_mutex();

/** Loads ggml's backends once in a process. node-llama-cpp may have loaded them before. */
void load_backends(const BackendOptions & options);

/** Returns the GPU of the loaded backends, preferably a discrete card; null for none. */
ggml_backend_dev_t find_gpu();

/** Returns the system's reason for a missing GPU: its backend could not be loaded, or found no device. */
std::string missing_gpu(const BackendOptions & options);

/** Returns ggml's name of a device's backend; "CPU" for null. */
std::string backend_name(ggml_backend_dev_t device);

/** Returns a function that ggml's CPU backend exports by name; null if it has none of that name. */
template <typename Function>
Function cpu_function(const char * name) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!device) return nullptr;
    return reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name));
}

}  // namespace tds
