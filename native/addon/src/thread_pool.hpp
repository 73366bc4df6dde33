#pragma once

#include "ggml-cpu.h"

namespace tds {

/** ggml's threads, which the decoders of a model share. Made with the backends loaded and their mutex held. */
class ThreadPool {
  public:
    /** No pool for one thread, or where ggml has none. */
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool &) = delete;
    ThreadPool & operator=(const ThreadPool &) = delete;

    /** Null without a pool. */
    ggml_threadpool_t get() const { return pool_; }

  private:
    ggml_threadpool_t pool_ = nullptr;
    /** Looked up by the constructor: ggml's registry may be changed by another thread when the pool is freed. */
    void (*free_)(ggml_threadpool_t) = nullptr;
};

}  // namespace tds
