#include "large_stack.hpp"

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "memory.hpp"

namespace tds {

namespace {

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

/** Memory for a stack, with a guard page below it. */
class Stack {
  public:
    explicit Stack(size_t bytes) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        size_ = round_up(std::max(bytes, static_cast<size_t>(PTHREAD_STACK_MIN)), page) + page;
        memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
        if (memory_ == MAP_FAILED) throw std::runtime_error("there is no memory for a stack");
        mprotect(memory_, page, PROT_NONE);
    }
    ~Stack() { munmap(memory_, size_); }
    Stack(const Stack &) = delete;
    Stack & operator=(const Stack &) = delete;

    void * memory() const { return memory_; }
    size_t size() const { return size_; }

  private:
    void * memory_ = nullptr;
    size_t size_ = 0;
};

struct Call {
    const std::function<void()> & work;
    std::exception_ptr error;
};

void * run(void * data) {
    auto & call = *static_cast<Call *>(data);
    try {
        call.work();
    } catch (...) {
        call.error = std::current_exception();
    }
    return nullptr;
}

}  // namespace

void run_on_large_stack(size_t bytes, const std::function<void()> & work) {
    const Stack stack(bytes);
    Call call = {work, nullptr};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread;
    const bool is_started = pthread_attr_setstack(&attributes, stack.memory(), stack.size()) == 0 &&
                            pthread_create(&thread, &attributes, run, &call) == 0;
    pthread_attr_destroy(&attributes);
    if (!is_started) throw std::runtime_error("a thread could not be started");
    pthread_join(thread, nullptr);
    if (call.error) std::rethrow_exception(call.error);
}

}  // namespace tds
