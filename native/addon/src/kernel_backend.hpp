#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ggml-cpu.h"
#include "instructions.hpp"

namespace tds {

/**
 * A ggml device with our own kernels for the two operations that take a CPU's time: products of 8-bit weights
 * (`q8_matmul.hpp`) and attention (`attention.hpp`). ggml's CPU backend computes all others, as it does beside ggml's
 * BLAS backend. Tensors stay in the CPU's memory. Only weights are copied: they are packed when they are first used,
 * and the originals, mapped from the file, then need no memory.
 *
 * It must outlive the contexts that were made with it. Only the thread that they compute on may use it.
 */
class KernelBackend {
  public:
    /**
     * Returns null for NONE. The machine must have other instructions. At most `threads_max` threads will compute. The
     * caller holds the backends' mutex.
     */
    static std::unique_ptr<KernelBackend> create(Instructions instructions, int threads_max);
    ~KernelBackend();
    KernelBackend(const KernelBackend &) = delete;
    KernelBackend & operator=(const KernelBackend &) = delete;

    /** ggml computes products with fewer columns, by another kernel with other bits. */
    static constexpr int64_t COLUMNS_MIN = 2;

    /** Computes on so many threads from now on; `pool` is null for one. */
    void set_threads(int threads, ggml_threadpool_t pool);

    /** Returns the number of operations that it has computed. */
    size_t computed() const;

    /**
     * Registers the device with ggml for as long as this lives. llama.cpp gives every context all registered devices,
     * and has no other way to name one. Contexts of other code must not get it, which would outlive it. So the
     * backends' mutex must be held throughout. node-llama-cpp does not take it: `native/evaluators/` lets only one of
     * the two load at a time.
     */
    class Offer {
      public:
        explicit Offer(KernelBackend & backend);
        ~Offer();
        Offer(const Offer &) = delete;
        Offer & operator=(const Offer &) = delete;

      private:
        KernelBackend & backend_;
    };

  private:
    struct State;
    explicit KernelBackend(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace tds
