#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "loaded_model.hpp"
#include "task.hpp"

namespace tds {

struct EvaluatorOptions {
    ModelOptions model;
    /** Plans that may wait. */
    size_t queue_limit = 0;
};

enum class Submission { accepted, overloaded, closed };

/**
 * Evaluates plans on a thread of its own, the inference thread. Small plans and large ones have a decoder each, and the
 * decoders take turns: a request of 300 tokens waits for one decode of a 16K-token one only, and its attention does not
 * walk the other's cells.
 */
class Evaluator {
  public:
    using OnLoaded = std::function<void(const ModelFacts &)>;
    using OnDone = std::function<void(std::unique_ptr<Task>)>;
    using OnClosed = std::function<void()>;

    /**
     * Starts loading, or throws std::system_error when the system starts no more threads. `on_loaded` comes once and
     * `on_closed` last, from the inference thread; `on_done` per task, from any.
     */
    Evaluator(EvaluatorOptions options, OnLoaded on_loaded, OnDone on_done, OnClosed on_closed);
    /** Closes and waits for the thread. */
    ~Evaluator();
    Evaluator(const Evaluator &) = delete;
    Evaluator & operator=(const Evaluator &) = delete;

    /** Any thread. An accepted task comes back through `on_done` exactly once. */
    Submission submit(std::unique_ptr<Task> task);
    /** Any thread. Gives a task up: at once when it waits, else after the decode that it is in, unless it is done. */
    void cancel(uint64_t id);
    /** Any thread. What is not done fails. */
    void close();

    /** Any thread. Plans that wait for a decoder. */
    size_t waiting() const;
    const Counters & counters() const { return counters_; }

  private:
    void run();
    void load();
    void unload();
    void serve();
    /** Waits until there is something to do. Returns false when that is closing. */
    bool wait_for_work();
    void admit_waiting();
    /** Admits the first waiting task of a decoder. Returns false when it has none, or no room. */
    bool admit_next(size_t decoder);
    void give_up_cancelled();
    /** One decode of the decoder whose turn it is. */
    void take_turn();
    /** Takes back what a decoder has returned: interrupted tasks wait again, in front. */
    void take_back(size_t decoder, Returned returned);
    void fail_all();
    void fail(std::unique_ptr<Task> task, const char * message);
    void give_up(std::unique_ptr<Task> task);
    /** With the mutex held. */
    std::unique_ptr<Task> take_waiting(uint64_t id);
    /** With the mutex held. */
    size_t waiting_count() const;

    const EvaluatorOptions options_;
    const OnLoaded on_loaded_;
    const OnDone on_done_;
    const OnClosed on_closed_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    /** Waiting tasks by decoder, first come first served; those that are evaluated again are in front. */
    std::array<std::deque<std::unique_ptr<Task>>, 2> queues_;
    /** Running tasks that are to be given up. */
    std::vector<uint64_t> cancelled_;
    std::atomic<bool> closing_{false};

    Counters counters_;
    /** Set and reset by the inference thread with the mutex held, which other threads hold to read it. */
    std::unique_ptr<LoadedModel> model_;
    /** The decoder whose turn it is. */
    size_t next_decoder_ = 0;
    std::thread thread_;
};

}  // namespace tds
