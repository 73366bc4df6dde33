#include "evaluator.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <exception>

namespace tds {

Evaluator::Evaluator(EvaluatorOptions options, OnLoaded on_loaded, OnDone on_done, OnClosed on_closed)
    : options_(std::move(options)),
      on_loaded_(std::move(on_loaded)),
      on_done_(std::move(on_done)),
      on_closed_(std::move(on_closed)),
      thread_([this] { run(); }) {}

Evaluator::~Evaluator() {
    close();
    thread_.join();
}

Submission Evaluator::submit(std::unique_ptr<Task> task) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return Submission::closed;
    if (waiting_count() >= options_.queue_limit) return Submission::overloaded;
    queues_[queue_of(task->plan)].push_back(std::move(task));
    changed_.notify_one();
    return Submission::accepted;
}

size_t Evaluator::decoder_of(const Plan & plan) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_of(plan);
}

std::unique_ptr<Task> Evaluator::take_waiting(uint64_t id) {
    for (auto & queue : queues_) {
        const auto at = std::find_if(queue.begin(), queue.end(), [&](const auto & task) { return task->id == id; });
        if (at == queue.end()) continue;
        std::unique_ptr<Task> task = std::move(*at);
        queue.erase(at);
        return task;
    }
    return nullptr;
}

void Evaluator::cancel(uint64_t id) {
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
    give_up(std::move(task));
}

void Evaluator::close() {
    std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    changed_.notify_one();
}

size_t Evaluator::waiting_count() const {
    size_t waiting = 0;
    for (const auto & queue : queues_) waiting += queue.size();
    return waiting;
}

size_t Evaluator::waiting() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return waiting_count();
}

void Evaluator::run() {
    load();
    if (model_) serve();
    fail_all();
    unload();
    on_closed_();
}

/** Frees the model without the mutex, so that other threads do not wait. */
void Evaluator::unload() {
    std::unique_ptr<LoadedModel> unloaded;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        unloaded = std::move(model_);
    }
    unloaded.reset();
#ifdef __GLIBC__
    // Without this, the C library would keep the freed memory of an unloaded model.
    malloc_trim(0);
#endif
}

void Evaluator::load() {
    ModelFacts facts;
    try {
        std::unique_ptr<LoadedModel> model;
        {
            std::lock_guard<std::mutex> backends_lock(backends_mutex());
            model = std::make_unique<LoadedModel>(options_.model, counters_, closing_, facts);
        }
        std::lock_guard<std::mutex> lock(mutex_);
        model_ = std::move(model);
    } catch (const std::exception & error) {
        facts.error = error.what();
    }
    on_loaded_(facts);
}

bool Evaluator::wait_for_work() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] {
        const auto & decoders = model_->decoders();
        const bool is_busy = !std::all_of(decoders.begin(), decoders.end(), [](const auto & it) { return it->idle(); });
        return closing_ || is_busy || !cancelled_.empty() || waiting_count() > 0;
    });
    return !closing_;
}

void Evaluator::serve() {
    while (wait_for_work()) {
        give_up_cancelled();
        start_waiting();
        take_turn();
    }
}

void Evaluator::give_up_cancelled() {
    std::vector<std::unique_ptr<Task>> found;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        for (const uint64_t id : cancelled_) {
            // An interrupted task may be back in its queue.
            found.push_back(take_waiting(id));
            for (const auto & decoder : model_->decoders()) found.push_back(decoder->withdraw(id));
        }
        cancelled_.clear();
    }
    for (auto & task : found) {
        if (task) give_up(std::move(task));
    }
}

void Evaluator::start_waiting() {
    for (size_t i = 0; i < model_->decoders().size(); i++) {
        while (start_next(i)) {
        }
    }
}

bool Evaluator::start_next(size_t index) {
    Decoder & decoder = *model_->decoders()[index];
    std::unique_ptr<Task> task;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        auto & queue = queues_[index];
        const auto next = std::find_if(queue.begin(), queue.end(), [&](const auto & it) { return !waits_for_prefix(*it); });
        if (next == queue.end() || !decoder.can_start(**next)) return false;
        task = std::move(*next);
        queue.erase(next);
    }
    if (!decoder.fits(task->plan)) {
        fail(std::move(task), "The plan needs more of the cache than there is.");
        return true;
    }
    try {
        decoder.start(task);
    } catch (const std::exception & error) {
        if (task) fail(std::move(task), error.what());
        take_back(index, decoder.abandon(error.what()));
    }
    return true;
}

bool Evaluator::waits_for_prefix(const Task & task) const {
    const auto & decoders = model_->decoders();
    return std::any_of(decoders.begin(), decoders.end(),
                       [&](const auto & decoder) { return decoder->is_reading_prefix_of(task); });
}

void Evaluator::take_turn() {
    const auto & decoders = model_->decoders();
    for (size_t i = 0; i < decoders.size(); i++) {
        const size_t index = (next_decoder_ + i) % decoders.size();
        Decoder & decoder = *decoders[index];
        if (decoder.idle()) continue;
        next_decoder_ = (index + 1) % decoders.size();
        take_back(index, decoder.step());
        return;
    }
}

void Evaluator::take_back(size_t decoder, Returned returned) {
    if (!returned.interrupted.empty()) {
        std::lock_guard<std::mutex> lock(mutex_);
        auto & queue = queues_[decoder];
        for (auto task = returned.interrupted.rbegin(); task != returned.interrupted.rend(); ++task) {
            queue.push_front(std::move(*task));
        }
    }
    for (auto & task : returned.finished) on_done_(std::move(task));
}

void Evaluator::fail_all() {
    std::vector<std::unique_ptr<Task>> left;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        closing_ = true;
        for (auto & queue : queues_) {
            for (auto & task : queue) left.push_back(std::move(task));
            queue.clear();
        }
    }
    if (model_) {
        for (const auto & decoder : model_->decoders()) {
            for (auto & task : decoder->withdraw_all()) left.push_back(std::move(task));
        }
    }
    for (auto & task : left) fail(std::move(task), "The model has been closed.");
}

void Evaluator::fail(std::unique_ptr<Task> task, const char * message) {
    task->outcome = Outcome::failed;
    task->message = message;
    on_done_(std::move(task));
}

void Evaluator::give_up(std::unique_ptr<Task> task) {
    task->outcome = Outcome::cancelled;
    on_done_(std::move(task));
}

}  // namespace tds
