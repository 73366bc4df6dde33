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
    /** The largest number of waiting plans. */
    size_t queue_limit = 0;
};

enum class Submission { accepted, overloaded, closed };

/**
 * Evaluates plans on its own thread, the inference thread. Small and large plans have one decoder each, and the
 * decoders alternate. So a request of 300 tokens waits for one decode of a 16K-token one only, and its attention skips
 * the other's cells.
 */
class Evaluator {
  public:
    using OnLoaded = std::function<void(const ModelFacts &)>;
    using OnDone = std::function<void(std::unique_ptr<Task>)>;
    using OnClosed = std::function<void()>;

    /**
     * Starts loading. Throws std::system_error when no thread can be started. The inference thread calls `on_loaded`
     * once and `on_closed` last. Any thread calls `on_done`, once for each task.
     */
    Evaluator(EvaluatorOptions options, OnLoaded on_loaded, OnDone on_done, OnClosed on_closed);
    /** Closes and waits for the thread. */
    ~Evaluator();
    Evaluator(const Evaluator &) = delete;
    Evaluator & operator=(const Evaluator &) = delete;

    /** Any thread. `on_done` gets every accepted task exactly once. */
    Submission submit(std::unique_ptr<Task> task);
    /** Any thread. Returns the index of the plan's decoder; 0 while there is no model. */
    size_t decoder_of(const Plan & plan) const;
    /** Any thread. Cancels a task: at once while it waits, else after its current decode, unless that completes it. */
    void cancel(uint64_t id);
    /** Any thread. Unfinished work fails. */
    void close();

    /** Any thread. Returns the number of waiting plans. */
    size_t waiting() const;
    const Counters & counters() const { return counters_; }

  private:
    void run();
    void load();
    void unload();
    void serve();
    /** Waits for work. Returns false when the evaluator closes. */
    bool wait_for_work();
    void start_waiting();
    /** Starts a decoder's first task that waits for no prefix. Returns false when there is none, or no room. */
    bool start_next(size_t decoder);
    /** Returns true if a running task is reading the task's prefix. */
    bool waits_for_prefix(const Task & task) const;
    void give_up_cancelled();
    /** Runs one decode of the next decoder. */
    void take_turn();
    /** Takes the tasks that a decoder has returned. Interrupted tasks wait again, in front. */
    void take_back(size_t decoder, Returned returned);
    void fail_all();
    void fail(std::unique_ptr<Task> task, const char * message);
    void give_up(std::unique_ptr<Task> task);
    /** With the mutex held. */
    std::unique_ptr<Task> take_waiting(uint64_t id);
    /** With the mutex held. */
    size_t waiting_count() const;
    size_t queue_of(const Plan & plan) const { return model_ ? model_->decoder_of(plan) : 0; }

    const EvaluatorOptions options_;
    const OnLoaded on_loaded_;
    const OnDone on_done_;
    const OnClosed on_closed_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    /** Waiting tasks by decoder, first come first served. Interrupted tasks are in front. */
    std::array<std::deque<std::unique_ptr<Task>>, 2> queues_;
    /** Running tasks to cancel. */
    std::vector<uint64_t> cancelled_;
    std::atomic<bool> closing_{false};

    Counters counters_;
    /** The inference thread sets and resets it under the mutex. Other threads read it under the mutex. */
    std::unique_ptr<LoadedModel> model_;
    /** The decoder of the next decode. */
    size_t next_decoder_ = 0;
    std::thread thread_;
};

}  // namespace tds
