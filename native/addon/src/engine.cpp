#include "engine.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "ggml-backend.h"
#include "model_file.hpp"
#include "q8_matmul.hpp"

namespace tds {

namespace {

constexpr uint32_t TILE = 64;
/** What a plan in the lane of small plans may need; on a CPU the lane has no more. */
constexpr uint32_t SMALL_CELLS = 4096;
/** A GPU reads many small plans at once. */
constexpr uint32_t GPU_CELLS = 16384;
/** Room of a lane beyond the longest plan: rounding, more than one branch at a time, and fillers. */
constexpr uint32_t SPARE_CELLS = 2 * TILE + 1024 + TILE;

template <typename Function>
Function cpu_function(const char * name) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!device) return nullptr;
    return reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name));
}

/** ggml keeps matrices that AMX multiplies in buffers of their own, which it only has where it may use AMX. */
bool has_amx_buffers() {
    auto * extra_types = cpu_function<ggml_backend_dev_get_extra_bufts_t>("ggml_backend_dev_get_extra_bufts");
    if (!extra_types) return false;
    ggml_backend_buffer_type_t * types = extra_types(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
    for (; types && *types; types++) {
        if (std::strcmp(ggml_backend_buft_name(*types), "AMX") == 0) return true;
    }
    return false;
}

/** ggml's name of a device's backend; that of the CPU without one. */
std::string backend_name(ggml_backend_dev_t device) {
    return device ? ggml_backend_reg_name(ggml_backend_dev_backend_reg(device)) : "CPU";
}

}  // namespace

MachineFacts inspect_machine(const BackendOptions & options) {
    std::lock_guard<std::mutex> lock(backends_mutex());
    load_backends(options);
    ggml_backend_dev_t gpu = options.gpu.empty() ? nullptr : find_gpu();
    MachineFacts facts;
    facts.device = backend_name(gpu);
    ggml_backend_dev_t device = gpu ? gpu : ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device) facts.description = ggml_backend_dev_description(device);
    if (!gpu && !options.gpu.empty()) facts.missing_gpu = missing_gpu(options);
    facts.has_own_kernels = !gpu && q8::is_supported();
    facts.uses_amx = !gpu && has_amx_buffers();
    return facts;
}

Engine::Engine(EngineOptions options, OnLoaded on_loaded, OnDone on_done, OnClosed on_closed)
    : options_(std::move(options)),
      on_loaded_(std::move(on_loaded)),
      on_done_(std::move(on_done)),
      on_closed_(std::move(on_closed)),
      queues_(1),
      prefixes_(options_.prefix_cache_bytes),
      thread_([this] { run(); }) {}

Engine::~Engine() {
    close();
    thread_.join();
}

Submission Engine::submit(std::unique_ptr<Task> task) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return Submission::closed;
    size_t waiting = 0;
    for (const auto & queue : queues_) waiting += queue.size();
    if (waiting >= options_.queue_limit) return Submission::overloaded;
    size_t lane = 0;
    while (lane + 1 < lanes_.size() && !lanes_[lane]->fits(task->plan)) lane++;
    queues_[lane].push_back(std::move(task));
    changed_.notify_one();
    return Submission::accepted;
}

std::unique_ptr<Task> Engine::take_waiting(uint64_t id) {
    for (auto & queue : queues_) {
        const auto at = std::find_if(queue.begin(), queue.end(), [&](const auto & task) { return task->id == id; });
        if (at == queue.end()) continue;
        std::unique_ptr<Task> task = std::move(*at);
        queue.erase(at);
        return task;
    }
    return nullptr;
}

void Engine::cancel(uint64_t id) {
    std::unique_ptr<Task> task;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        task = take_waiting(id);
        if (!task) {
            cancelled_.push_back(id);
            changed_.notify_one();
            return;
        }
    }
    task->outcome = Outcome::cancelled;
    on_done_(std::move(task));
}

void Engine::close() {
    std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    changed_.notify_one();
}

size_t Engine::waiting() const {
    std::lock_guard<std::mutex> lock(mutex_);
    size_t waiting = 0;
    for (const auto & queue : queues_) waiting += queue.size();
    return waiting;
}

void Engine::run() {
    EngineFacts facts;
    bool is_loaded = false;
    try {
        is_loaded = load(facts);
    } catch (const std::exception & error) {
        facts.error = error.what();
    }
    on_loaded_(facts);
    if (is_loaded) serve();
    std::vector<std::unique_ptr<Task>> left;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        closing_ = true;
        for (auto & queue : queues_) {
            for (auto & task : queue) left.push_back(std::move(task));
            queue.clear();
        }
    }
    for (auto & lane : lanes_) {
        for (auto & task : lane->withdraw_all()) left.push_back(std::move(task));
    }
    for (auto & task : left) fail(std::move(task), "The model has been closed.");
    unload();
    on_closed_();
}

bool Engine::load(EngineFacts & facts) {
    std::lock_guard<std::mutex> lock(backends_mutex());
    load_backends(options_.backends);
    const bool wants_gpu = !options_.backends.gpu.empty();
    ggml_backend_dev_t gpu = wants_gpu ? find_gpu() : nullptr;
    if (wants_gpu && !gpu) facts.missing_gpu = missing_gpu(options_.backends);
    if (options_.require_gpu && !gpu) {
        facts.error = facts.missing_gpu;
        return false;
    }
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = gpu ? -1 : 0;
    ggml_backend_dev_t no_devices[] = {nullptr};
    if (!gpu) params.devices = no_devices;
    model_ = load_model_file(options_.model_path, params);
    if (llama_model_has_encoder(model_) || llama_model_is_recurrent(model_) || llama_model_is_hybrid(model_)) {
        facts.error = "this kind of model cannot share a prefix between branches";
        return false;
    }

    if (options_.threads > 1) {
        auto * create = cpu_function<ggml_threadpool_t (*)(ggml_threadpool_params *)>("ggml_threadpool_new");
        ggml_threadpool_params pool = ggml_threadpool_params_default(options_.threads);
        free_threadpool_ = cpu_function<void (*)(ggml_threadpool_t)>("ggml_threadpool_free");
        if (create && free_threadpool_) threadpool_ = create(&pool);
    }
    readout_ = std::make_unique<Readout>();

    if (!gpu && options_.own_kernels) kernels_ = KernelBackend::create(options_.threads, threadpool_);

    LaneShared shared;
    shared.model = model_;
    shared.readout = readout_.get();
    shared.prefixes = &prefixes_;
    shared.counters = &counters_;
    shared.closing = &closing_;
    shared.threadpool = threadpool_;
    shared.threads = options_.threads;
    shared.on_gpu = gpu != nullptr;

    const uint32_t large_cells = static_cast<uint32_t>(options_.context_tokens) + SPARE_CELLS;
    LaneOptions small, large;
    small.fault_token = large.fault_token = options_.fault_token;
    small.read_fault_token = large.read_fault_token = options_.read_fault_token;
    small.separate = large.separate = options_.deterministic;
    small.plan_cells = SMALL_CELLS;
    large.cells = large_cells;
    if (gpu) {
        small.cells = std::min(GPU_CELLS, large_cells);
        small.batch_tokens = 2048;
        large.batch_tokens = 1024;
    } else {
        small.cells = std::min(SMALL_CELLS, large_cells);
        small.batch_tokens = 512;
        large.batch_tokens = 128;
        small.minimum_tokens = large.minimum_tokens = TILE;
        small.aligned = large.aligned = !options_.deterministic;
    }
    // Deterministic, the lane must not show in a plan's bits.
    if (options_.deterministic) large.batch_tokens = small.batch_tokens;
    const bool full = gpu || options_.full_decodes;
    small.fill_tokens = full ? small.batch_tokens : TILE;
    large.fill_tokens = full ? large.batch_tokens : TILE;
    std::optional<KernelBackend::Offer> offer;
    if (kernels_) offer.emplace(*kernels_);
    lanes_.push_back(std::make_unique<Lane>(shared, small));
    if (large_cells > SMALL_CELLS) lanes_.push_back(std::make_unique<Lane>(shared, large));
    offer.reset();
    {
        std::lock_guard<std::mutex> queues_lock(mutex_);
        queues_.resize(lanes_.size());
    }
    // Where the model is computed, not where it should be.
    ggml_backend_dev_t device = lanes_.front()->device();
    facts.device = backend_name(device ? device : gpu);
    facts.context_tokens = options_.context_tokens;
    facts.vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model_));
    return true;
}

void Engine::unload() {
    lanes_.clear();
    kernels_.reset();
    readout_.reset();
    if (threadpool_) free_threadpool_(threadpool_);
    threadpool_ = nullptr;
    if (model_) llama_model_free(model_);
    model_ = nullptr;
#ifdef __GLIBC__
    // The C library would keep what was freed for itself, and an unloaded model is to leave its memory to others.
    malloc_trim(0);
#endif
}

void Engine::serve() {
    while (true) {
        {
            std::unique_lock<std::mutex> lock(mutex_);
            changed_.wait(lock, [&] {
                const auto is_waiting = [](const auto & queue) { return !queue.empty(); };
                const auto is_busy = [](const auto & lane) { return !lane->idle(); };
                return closing_ || !cancelled_.empty() ||
                       std::any_of(queues_.begin(), queues_.end(), is_waiting) ||
                       std::any_of(lanes_.begin(), lanes_.end(), is_busy);
            });
            if (closing_) return;
        }
        cancel_running();
        admit();
        for (size_t i = 0; i < lanes_.size(); i++) {
            Lane & lane = *lanes_[(next_lane_ + i) % lanes_.size()];
            if (lane.idle()) continue;
            next_lane_ = (next_lane_ + i + 1) % lanes_.size();
            turn(lane);
            break;
        }
    }
}

void Engine::cancel_running() {
    std::vector<std::unique_ptr<Task>> found;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        for (const uint64_t id : cancelled_) {
            // It may be back in its queue, to be tried again alone.
            found.push_back(take_waiting(id));
            for (auto & lane : lanes_) found.push_back(lane->withdraw(id));
        }
        cancelled_.clear();
    }
    for (auto & task : found) {
        if (!task) continue;
        task->outcome = Outcome::cancelled;
        on_done_(std::move(task));
    }
}

void Engine::admit() {
    for (size_t i = 0; i < lanes_.size(); i++) {
        while (true) {
            std::unique_ptr<Task> task;
            {
                std::lock_guard<std::mutex> lock(mutex_);
                if (queues_[i].empty() || !lanes_[i]->can_admit(*queues_[i].front())) break;
                task = std::move(queues_[i].front());
                queues_[i].pop_front();
            }
            if (!lanes_[i]->fits(task->plan)) {
                fail(std::move(task), "The plan needs more of the cache than there is.");
                continue;
            }
            std::vector<std::unique_ptr<Task>> finished, interrupted;
            try {
                lanes_[i]->admit(task);
                continue;
            } catch (const std::exception & error) {
                if (task) fail(std::move(task), error.what());
                lanes_[i]->abandon(error.what(), finished, interrupted);
            }
            take_back(i, std::move(finished), std::move(interrupted));
        }
    }
}

void Engine::turn(Lane & lane) {
    std::vector<std::unique_ptr<Task>> finished, interrupted;
    lane.step(finished, interrupted);
    take_back(&lane == lanes_.front().get() ? 0 : lanes_.size() - 1, std::move(finished), std::move(interrupted));
}

void Engine::take_back(size_t lane, std::vector<std::unique_ptr<Task>> finished,
                       std::vector<std::unique_ptr<Task>> interrupted) {
    if (!interrupted.empty()) {
        std::lock_guard<std::mutex> lock(mutex_);
        auto & queue = queues_[lane];
        for (auto task = interrupted.rbegin(); task != interrupted.rend(); ++task) queue.push_front(std::move(*task));
    }
    for (auto & task : finished) on_done_(std::move(task));
}

void Engine::fail(std::unique_ptr<Task> task, const char * message) {
    task->outcome = Outcome::failed;
    task->message = message;
    on_done_(std::move(task));
}

}  // namespace tds
