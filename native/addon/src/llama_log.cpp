#include "llama_log.hpp"

#include <atomic>
#include <deque>

#include "llama.h"

namespace tds {

namespace {

/** An earlier callback of llama.cpp's log. */
struct Listener {
    ggml_log_callback callback;
    void * data;
};

/** The callback of node-llama-cpp, if it has taken the log; null for none. It lives until the process ends. */
std::atomic<const Listener *> other_listener{nullptr};

/** This thread's first error; null while nobody asks for it. */
thread_local std::string * first_error = nullptr;

/** Receives llama.cpp's log. It stays registered and has no data, because another thread may call it at any time. */
void receive(ggml_log_level level, const char * text, void *) {
    if (first_error) {
        if (level == GGML_LOG_LEVEL_ERROR && first_error->empty()) *first_error = text;
        return;
    }
    const Listener * other = other_listener.load();
    if (other) other->callback(level, text, other->data);
}

/** Takes the log back from node-llama-cpp, and forwards messages to it that are not kept here. */
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
