#include "thread_pool.hpp"

#include "backends.hpp"

namespace tds {

ThreadPool::ThreadPool(int threads) {
    if (threads <= 1) return;
    auto * create = cpu_function<ggml_threadpool_t (*)(ggml_threadpool_params *)>("ggml_threadpool_new");
    free_ = cpu_function<void (*)(ggml_threadpool_t)>("ggml_threadpool_free");
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    // Threads without work spin for about 2 ms, which is longer than between the graphs of a decode. ggml's own 50 lets
    // them spin for 100 ms after each request.
    params.poll = 1;
    if (create && free_) pool_ = create(&params);
}

ThreadPool::~ThreadPool() {
    if (pool_) free_(pool_);
}

}  // namespace tds
