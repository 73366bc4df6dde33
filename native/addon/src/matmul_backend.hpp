#pragma once

#include <memory>

#include "ggml-cpu.h"

namespace tds {

/**
 * A ggml device that multiplies 8-bit weights (`q8_matmul.hpp`) and leaves everything else to the CPU's own backend, as
 * ggml's BLAS backend does. Its tensors are the CPU's: nothing is copied but the weights, which are packed when they
 * are first used, and whose originals are mapped from the file and need no memory then.
 *
 * Must outlive the contexts that were made with it, and belongs to the thread that they compute on.
 */
class MatmulBackend {
  public:
    /** Null where the machine lacks the instructions. `pool` may be null, for one thread. */
    static std::unique_ptr<MatmulBackend> create(int threads, ggml_threadpool_t pool);
    ~MatmulBackend();
    MatmulBackend(const MatmulBackend &) = delete;
    MatmulBackend & operator=(const MatmulBackend &) = delete;

    /**
     * While this lives, llama.cpp gives the device to every context that is made: it takes what is registered, and
     * nothing else can be named to it. Contexts of others in the process, made later, must not get it.
     */
    class Offer {
      public:
        explicit Offer(MatmulBackend & backend);
        ~Offer();
        Offer(const Offer &) = delete;
        Offer & operator=(const Offer &) = delete;

      private:
        MatmulBackend & backend_;
    };

  private:
    struct State;
    explicit MatmulBackend(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace tds
