#pragma once

#include <string>

#include "backends.hpp"
#include "instructions.hpp"

namespace tds {

/** The facts of a machine that are known without a model. */
struct MachineFacts {
    /** ggml's name of the device, "CPU" without a GPU, and the maker's. */
    std::string device;
    std::string description;
    /** The reason for a wanted GPU that is not used; empty otherwise. */
    std::string missing_gpu;
    /** The instructions of our kernels; none on a GPU. */
    Instructions kernels = Instructions::NONE;
    /** True if ggml multiplies matrices by AMX: the CPU has it and the operating system permits it. */
    bool uses_amx = false;
};

/** Any thread; loads the backends. */
MachineFacts inspect_machine(const BackendOptions & options);

}  // namespace tds
