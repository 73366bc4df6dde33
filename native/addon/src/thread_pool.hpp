#pragma once

#include "ggml-cpu.h"

namespace tds {

/** ggml's threads, which a model's decoders share. The creator has loaded the backends and holds their mutex. */
class ThreadPool {
  public:
    /** Creates no pool for one thread, or if ggml has none. */
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool &) = delete;
    ThreadPool & operator=(const ThreadPool &) = delete;

    /** Returns null without a pool. */
    ggml_threadpool_t get() const { return pool_; }

  private:
    ggml_threadpool_t pool_ = nullptr;
    /** The constructor looks it up, because another thread may change ggml's registry when the pool is freed. */
    void (*free_)(ggml_threadpool_t) = nullptr;
};

}  // namespace tds
