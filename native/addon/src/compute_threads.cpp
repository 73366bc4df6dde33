#include "compute_threads.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <fstream>

namespace tds {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/** Over a shorter time, a clock that ticks a hundred times a second tells too little. */
constexpr Seconds PERIOD{0.5};
/** Cores that other work may need, and all cores still compute: this service's own requests, and a system at rest. */
constexpr double OTHERS_MAX = 0.15;

/** Models whose decode is running now, in the whole process. */
std::atomic<int> decoding{0};

double process_seconds() {
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/** Returns the busy time of all cores, with what a hypervisor took from them; negative if the file does not tell it. */
double machine_seconds(const std::string & path) {
    std::ifstream file(path);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
    file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen;
    if (!file || name != "cpu") return -1;
    return (user + nice + system + interrupts + soft + stolen) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

ComputeThreads::ComputeThreads(const ThreadOptions & options)
    : options_(options),
      fewest_(options.fewest),
      most_(options.most > options.fewest ? options.most : 1),
      count_(options.fewest) {
    read(last_);
}

bool ComputeThreads::read(Times & times) const {
    times = {Clock::now(), machine_seconds(options_.cpu_times), process_seconds(), decodes_};
    return times.machine >= 0;
}

int ComputeThreads::choose() {
    if (options_.most <= options_.fewest) return options_.fewest;
    const Seconds elapsed = Clock::now() - last_.at;
    if (elapsed < PERIOD) return count_;
    const Times before = last_;
    const bool is_told = read(last_) && before.machine >= 0;
    // Threads that wait for a core need less time than their decodes take.
    const double own = std::min(last_.process - before.process, last_.decodes - before.decodes);
    const double others = (last_.machine - before.machine - own) / elapsed.count();
    count_ = is_told && others < OTHERS_MAX ? options_.most : options_.fewest;
    return count_;
}

ComputeThreads::Turn::Turn(ComputeThreads & threads)
    : threads_(threads), start_(Clock::now()), count_(threads.choose()) {
    // The threads of two models on all cores would wait for each other.
    if (decoding++ > 0) count_ = threads.options_.fewest;
}

ComputeThreads::Turn::~Turn() {
    decoding--;
    threads_.decodes_ += Seconds(Clock::now() - start_).count() * count_;
}

ggml_threadpool_t ComputeThreads::Turn::pool() const {
    return count_ == threads_.options_.fewest ? threads_.fewest_.get() : threads_.most_.get();
}

}  // namespace tds
