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
 * To be held while backends are loaded or looked at and while contexts are made: ggml's registry and llama.cpp's log
 * are shared by the engines of a process and have no lock.
 */
std::mutex & backends_mutex();

/** Loads ggml's backends, once per process: node-llama-cpp may have loaded them before. */
void load_backends(const BackendOptions & options);

/** The GPU of the backends that are loaded, a card of its own before one that shares the CPU's memory; null without. */
ggml_backend_dev_t find_gpu();

/** Why no GPU was found, in the system's words: what its backend lacks, or that it finds no device. */
std::string missing_gpu(const BackendOptions & options);

}  // namespace tds
