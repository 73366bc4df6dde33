#include "thread_pool.hpp"

#include "backends.hpp"

namespace tds {

ThreadPool::ThreadPool(int threads) {
    if (threads <= 1) return;
    auto * create = cpu_function<ggml_threadpool_t (*)(ggml_threadpool_params *)>("ggml_threadpool_new");
    free_ = cpu_function<void (*)(ggml_threadpool_t)>("ggml_threadpool_free");
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    if (create && free_) pool_ = create(&params);
}

ThreadPool::~ThreadPool() {
    if (pool_) free_(pool_);
}

}  // namespace tds
