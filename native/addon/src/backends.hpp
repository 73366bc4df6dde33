#pragma once

#include <mutex>
#include <string>

#include "ggml-backend.h"

namespace tds {

/** Where llama.cpp and ggml's backends are, and which of them is wanted. */
struct BackendOptions {
    /** The folder of libllama and of ggml's backends. */
    std::string directory;
    /** A folder with the GPU's backend for other versions of its runtime; empty when there is none. */
    std::string fallback_directory;
    /** `cuda`, `metal` or `vulkan`; empty for the CPU alone. */
    std::string gpu;
};

/**
 * To be held while backends are loaded or looked up and while contexts are made: ggml's registry and llama.cpp's log
 * are shared by everything in a process, and have no lock.
 */
std::mutex & backends_mutex();

/** Loads ggml's backends, once per process: node-llama-cpp may have loaded them before. */
void load_backends(const BackendOptions & options);

/** The GPU of the loaded backends, a discrete card before one that shares the CPU's memory; null without one. */
ggml_backend_dev_t find_gpu();

/** Why no GPU was found, in the system's words: what its backend lacks, or that it finds no device. */
std::string missing_gpu(const BackendOptions & options);

/** ggml's name of a device's backend; "CPU" for null. */
std::string backend_name(ggml_backend_dev_t device);

/** A function that ggml's CPU backend exports by name only; null where it has none of that name. */
template <typename Function>
Function cpu_function(const char * name) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!device) return nullptr;
    return reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name));
}

}  // namespace tds
