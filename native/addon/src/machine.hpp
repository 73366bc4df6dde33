#pragma once

#include <string>

#include "backends.hpp"
#include "instructions.hpp"

namespace tds {

/** What a machine has to evaluate plans with, as far as is known without a model. */
struct MachineFacts {
    /** ggml's name of the device, "CPU" without one, and the maker's. */
    std::string device;
    std::string description;
    /** Why a GPU that was wanted is not used; empty when it is, or when none was wanted. */
    std::string missing_gpu;
    /** What our own kernels compute with; none on a GPU. */
    Instructions kernels = Instructions::NONE;
    /** Whether ggml multiplies matrices by AMX: the CPU has it, and the kernel permits it. */
    bool uses_amx = false;
};

/** Any thread; loads the backends. */
MachineFacts inspect_machine(const BackendOptions & options);

}  // namespace tds
