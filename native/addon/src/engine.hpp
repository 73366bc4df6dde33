#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends.hpp"
#include "lane.hpp"
#include "llama.h"
#include "kernel_backend.hpp"
#include "prefix_cache.hpp"
#include "readout.hpp"
#include "task.hpp"

namespace tds {

struct EngineOptions {
    BackendOptions backends;
    /** A GGUF file, or the first part of a split one. */
    std::string model_path;
    /** Whether the CPU will not do where there is no GPU. */
    bool require_gpu = false;
    int threads = 1;
    int32_t context_tokens = 0;
    /** Plans that may wait. */
    size_t queue_limit = 0;
    /** Bytes of prefixes that are kept for reuse. */
    size_t prefix_cache_bytes = 0;
    /** Whether plans are taken into one decode until it is full; otherwise only until it is large enough. */
    bool full_decodes = false;
    /** One plan at a time, one branch a decode. */
    bool deterministic = false;
    /** Whether our kernels compute where the CPU has the instructions. */
    bool own_kernels = true;
    /** Token ids that make a decode fail, and what is read of it, for tests; -1 for none. */
    int32_t fault_token = -1;
    int32_t read_fault_token = -1;
};

/** What is known once the model is loaded; `error` is empty then. */
struct EngineFacts {
    std::string error;
    /** ggml's name of the device, "CPU" without one. */
    std::string device;
    /** Why a GPU that was wanted is not used; empty when it is, or when none was wanted. */
    std::string missing_gpu;
    int32_t context_tokens = 0;
    int32_t vocabulary = 0;
};

/** What a machine has for an engine, as far as is known without a model. */
struct MachineFacts {
    /** ggml's name of the device, "CPU" without one, and the maker's. */
    std::string device;
    std::string description;
    /** As in `EngineFacts`. */
    std::string missing_gpu;
    /** Whether it computes with our own kernels. */
    bool has_own_kernels = false;
    /** Whether ggml multiplies matrices by AMX: the CPU has it, and the kernel permits it. */
    bool uses_amx = false;
};

/** Any thread; loads the backends. */
MachineFacts inspect_machine(const BackendOptions & options);

enum class Submission { accepted, overloaded, closed };

/**
 * Evaluates plans on a thread of its own. Small plans and large ones have a lane each, and the lanes take turns: a
 * 300-token request waits for one chunk of a 16K-token one, and its attention does not walk the other's cells.
 */
class Engine {
  public:
    using OnLoaded = std::function<void(const EngineFacts &)>;
    using OnDone = std::function<void(std::unique_ptr<Task>)>;
    using OnClosed = std::function<void()>;

    /**
     * Starts loading, or throws std::system_error when the system starts no more threads. `on_loaded` comes once and
     * `on_closed` last, from the inference thread; `on_done` per task, from any.
     */
    Engine(EngineOptions options, OnLoaded on_loaded, OnDone on_done, OnClosed on_closed);
    /** Closes and waits for the thread. */
    ~Engine();
    Engine(const Engine &) = delete;
    Engine & operator=(const Engine &) = delete;

    /** Any thread. An accepted task comes back through `on_done` exactly once. */
    Submission submit(std::unique_ptr<Task> task);
    /** Any thread. Gives a task up: at once when it waits, else after the decode that it is in, unless it is done. */
    void cancel(uint64_t id);
    /** Any thread. What is not done fails. */
    void close();

    /** Any thread. */
    size_t waiting() const;
    const Counters & counters() const { return counters_; }

  private:
    void run();
    bool load(EngineFacts & facts);
    void serve();
    void admit();
    /** With the mutex held. */
    std::unique_ptr<Task> take_waiting(uint64_t id);
    void cancel_running();
    void turn(Lane & lane);
    /** What a lane has given back: it waits again, in front, or is done. */
    void take_back(size_t lane, std::vector<std::unique_ptr<Task>> finished,
                   std::vector<std::unique_ptr<Task>> interrupted);
    void fail(std::unique_ptr<Task> task, const char * message);
    void unload();

    const EngineOptions options_;
    const OnLoaded on_loaded_;
    const OnDone on_done_;
    const OnClosed on_closed_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    /** Waiting tasks by lane, first come first served; those that are retried are in front. */
    std::vector<std::deque<std::unique_ptr<Task>>> queues_;
    /** Running tasks that are to be given up. */
    std::vector<uint64_t> cancelled_;
    std::atomic<bool> closing_{false};

    Counters counters_;
    PrefixCache prefixes_;
    std::unique_ptr<Readout> readout_;
    llama_model * model_ = nullptr;
    std::vector<std::unique_ptr<Lane>> lanes_;
    ggml_threadpool_t threadpool_ = nullptr;
    /** Looked up when loading: what is registered may change when the engine closes, because another one loads. */
    void (*free_threadpool_)(ggml_threadpool_t) = nullptr;
    /** Null on a GPU, and where the CPU lacks the instructions. */
    std::unique_ptr<KernelBackend> kernels_;
    size_t next_lane_ = 0;
    std::thread thread_;
};

}  // namespace tds
