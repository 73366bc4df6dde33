#pragma once

#include <memory>

#include "ggml-cpu.h"

namespace tds {

/**
 * A ggml device with kernels of our own, for what a CPU spends its time on: products of 8-bit weights (`q8_matmul.hpp`)
 * and attention (`attention.hpp`). Everything else is left to ggml's CPU backend, as ggml's own BLAS backend leaves it.
 * Its tensors are the CPU's: nothing is copied but the weights, which are packed when they are first used, and whose
 * originals are mapped from the file and need no memory then.
 *
 * Must outlive the contexts that were made with it, and belongs to the thread that they compute on.
 */
class KernelBackend {
  public:
    /** Null where the machine lacks the instructions. `pool` may be null, for one thread. */
    static std::unique_ptr<KernelBackend> create(int threads, ggml_threadpool_t pool);
    ~KernelBackend();
    KernelBackend(const KernelBackend &) = delete;
    KernelBackend & operator=(const KernelBackend &) = delete;

    /**
     * While this lives, llama.cpp gives the device to every context that is made: it takes what is registered, and
     * nothing else can be named to it. Contexts of others in the process, made later, must not get it, and ggml's
     * registry has no lock: meanwhile no other thread may look at it.
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
