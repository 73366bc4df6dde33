#include "backends.hpp"

#include <dlfcn.h>

#include <fstream>

#include "llama.h"
#include "llama_log.hpp"

namespace tds {

namespace {

/** Returns the path of the GPU's backend in a folder; empty for none. */
std::string gpu_library(const std::string & directory, const std::string & gpu) {
    if (directory.empty()) return "";
    const std::string path = directory + "/libggml-" + gpu + ".so";
    return std::ifstream(path).good() ? path : "";
}

}  // namespace

std::mutex & backends_mutex() {
    static std::mutex mutex;
    return mutex;
}

void load_backends(const BackendOptions & options) {
    if (!ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)) {
        silence_log();
        ggml_backend_load_all_from_path(options.directory.c_str());
        llama_backend_init();
    }
    // ggml does not track loaded folders: loading one twice would register every device twice.
    static bool is_fallback_loaded = false;
    if (options.gpu.empty() || options.fallback_directory.empty() || is_fallback_loaded || find_gpu()) return;
    is_fallback_loaded = true;
    ggml_backend_load_all_from_path(options.fallback_directory.c_str());
}

ggml_backend_dev_t find_gpu() {
    ggml_backend_dev_t gpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU);
    return gpu ? gpu : ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_IGPU);
}

std::string missing_gpu(const BackendOptions & options) {
    std::string reasons;
    for (const std::string & directory : {options.directory, options.fallback_directory}) {
        const std::string path = gpu_library(directory, options.gpu);
        if (path.empty()) continue;
        // The library is loaded as ggml loads it.
        void * library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        const char * reason = library ? nullptr : dlerror();
        if (library) dlclose(library);
        reasons += (reasons.empty() ? "" : "; ") + std::string(reason ? reason : path + " finds no device");
    }
    if (reasons.empty()) reasons = "llama.cpp has no " + options.gpu + " backend here";
    return options.gpu == "cuda" ? reasons + " (CUDA needs NVIDIA's driver, and libcudart and libcublas of version 12 or 13)"
                                 : reasons;
}

std::string backend_name(ggml_backend_dev_t device) {
    return device ? ggml_backend_reg_name(ggml_backend_dev_backend_reg(device)) : "CPU";
}

}  // namespace tds
