#include "compute_threads.hpp"

#include <unistd.h>

#include <atomic>
#include <fstream>

namespace tds {

namespace {

using Seconds = std::chrono::duration<double>;

/** Over a shorter time, a clock that ticks a hundred times a second tells too little. */
constexpr Seconds PERIOD{0.5};
/**
 * All of N cores compute while other work needs less than half an Nth of one. If it needs an Nth, they are as fast as
 * one core fewer.
 */
constexpr double SHARE_OF_OTHERS = 0.5;

/** Models whose decode is running now, in the whole process. */
std::atomic<int> decoding{0};

double seconds_of(clockid_t clock) {
    timespec time = {};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/** Returns the busy time of all cores, with what a hypervisor took from them. */
std::optional<double> machine_seconds(const std::string & path) {
    std::ifstream file(path);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
    file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen;
    if (!file || name != "cpu") return std::nullopt;
    return (user + nice + system + interrupts + soft + stolen) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

ComputeThreads::ComputeThreads(const ThreadOptions & options)
    : read_at_(Clock::now()),
      options_(options),
      last_(read()),
      fewest_(options.fewest),
      most_(last_ && options.most > options.fewest ? options.most : 1),
      count_(options.fewest) {
    if (!last_) options_.most = options_.fewest;
}

std::optional<ComputeThreads::Times> ComputeThreads::read() const {
    const auto machine = machine_seconds(options_.cpu_times);
    if (!machine) return std::nullopt;
    const double event_loop = options_.event_loop ? seconds_of(*options_.event_loop) : 0;
    return Times{*machine, seconds_of(CLOCK_PROCESS_CPUTIME_ID), event_loop};
}

int ComputeThreads::choose() {
    if (options_.most == options_.fewest) return options_.fewest;
    const Seconds elapsed = Clock::now() - read_at_;
    if (elapsed < PERIOD) return count_;
    const std::optional<Times> before = last_;
    last_ = read();
    read_at_ = Clock::now();
    count_ = options_.fewest;
    if (!before || !last_) return count_;
    const double machine = last_->machine - before->machine;
    const double process = last_->process - before->process;
    // Where the machine is busy for less time than this process alone, its times are not the machine's.
    if (machine < process / 2) return count_;
    const double others = machine - process + last_->event_loop - before->event_loop;
    if (others * options_.most < SHARE_OF_OTHERS * elapsed.count()) count_ = options_.most;
    return count_;
}

ComputeThreads::Lease::Lease(ComputeThreads & threads, bool may_be_most)
    : threads_(threads), count_(may_be_most ? threads.choose() : threads.options_.fewest) {
    // The threads of two models on all cores would wait for each other.
    if (decoding++ > 0) count_ = threads.options_.fewest;
}

ComputeThreads::Lease::~Lease() { decoding--; }

ggml_threadpool_t ComputeThreads::Lease::pool() const {
    return count_ == threads_.options_.fewest ? threads_.fewest_.get() : threads_.most_.get();
}

}  // namespace tds
