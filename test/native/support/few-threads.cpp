// Loaded before a process (LD_PRELOAD): the thread that C++ code starts as number FAIL_THREAD of the process is refused,
// and so are all later ones, as by a system that starts no more.

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t * thread, const pthread_attr_t * attributes,
                                                                     void * (*start)(void *), void * argument) {
    using Create = int (*)(pthread_t *, const pthread_attr_t *, void * (*)(void *), void *);
    static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    static std::atomic<int> left{std::atoi(std::getenv("FAIL_THREAD"))};
    Dl_info caller = {};
    dladdr(__builtin_return_address(0), &caller);
    // std::thread starts its threads from the C++ library, which nothing but the addon and llama.cpp uses here.
    const bool is_counted = caller.dli_fname && (std::strstr(caller.dli_fname, "libstdc++") ||
                                                 std::strstr(caller.dli_fname, "tds-addon"));
    if (is_counted && --left <= 0) return EAGAIN;
    return create(thread, attributes, start, argument);
}
