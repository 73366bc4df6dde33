#include "llama_log.hpp"

#include <atomic>
#include <deque>

#include "llama.h"

namespace tds {

namespace {

/** A function that llama.cpp's log was given to before. */
struct Listener {
    ggml_log_callback callback;
    void * data;
};

/** node-llama-cpp's where it has taken the log; null for none. What it points to stays until the process ends. */
std::atomic<const Listener *> other_listener{nullptr};

/** Where this thread's first error is kept; null while nobody asks for it. */
thread_local std::string * first_error = nullptr;

/** Never taken back nor given data of its own: another thread may be about to call it at any time. */
void receive(ggml_log_level level, const char * text, void *) {
    if (first_error) {
        if (level == GGML_LOG_LEVEL_ERROR && first_error->empty()) *first_error = text;
        return;
    }
    const Listener * other = other_listener.load();
    if (other) other->callback(level, text, other->data);
}

/** Takes the log again where node-llama-cpp has taken it, which goes on to be told what is not kept here. */
void take_log() {
    static std::deque<Listener> listeners;
    Listener current = {nullptr, nullptr};
    llama_log_get(&current.callback, &current.data);
    if (current.callback == receive) return;
    other_listener = &listeners.emplace_back(current);
    llama_log_set(receive, nullptr);
}

}  // namespace

void silence_log() { llama_log_set(receive, nullptr); }

FirstLoggedError::FirstLoggedError() {
    take_log();
    first_error = &text_;
}

FirstLoggedError::~FirstLoggedError() { first_error = nullptr; }

}  // namespace tds
