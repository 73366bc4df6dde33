#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>

#include "thread_pool.hpp"

namespace tds {

/** How many of ggml's threads compute a model. */
struct ThreadOptions {
    /** While other work needs the machine. */
    int fewest = 1;
    /** While none does. */
    int most = 1;
    /** The file with the CPU times of the machine, in the form of Linux's `/proc/stat`; empty for none. */
    std::string cpu_times;
    /** The clock of the CPU time of the event loop's thread; none where there is no event loop. */
    std::optional<clockid_t> event_loop;
};

/**
 * Chooses the number of threads for each decode of a model: the most while nothing else needs the machine, the fewest
 * otherwise. ggml's threads wait for each other many times a decode. So a thread that shares its core with other work
 * delays all of them, by several times where the machine is full.
 *
 * Other work is that of other processes and of the event loop. Where the system does not tell it, the fewest threads
 * compute. Used by the inference thread alone. The creator has loaded the backends and holds their mutex.
 */
class ComputeThreads {
  public:
    explicit ComputeThreads(const ThreadOptions & options);

    int most() const { return options_.most; }

    /** The threads of one decode, from before it until after it. */
    class Lease {
      public:
        /** The fewest threads, unless the bits of the decode do not depend on their number. */
        Lease(ComputeThreads & threads, bool may_be_most);
        ~Lease();
        Lease(const Lease &) = delete;
        Lease & operator=(const Lease &) = delete;

        int count() const { return count_; }
        /** Returns null for one thread. */
        ggml_threadpool_t pool() const;

      private:
        ComputeThreads & threads_;
        int count_;
    };

  private:
    using Clock = std::chrono::steady_clock;
    /** CPU times in seconds: of the machine, of this process, and of its event loop. */
    struct Times {
        double machine = 0;
        double process = 0;
        double event_loop = 0;
    };

    int choose();
    /** Returns nothing where the system does not tell them. */
    std::optional<Times> read() const;

    Clock::time_point read_at_;
    ThreadOptions options_;
    std::optional<Times> last_;
    ThreadPool fewest_;
    /** Without threads where it would be the same. */
    ThreadPool most_;
    int count_;
};

}  // namespace tds
