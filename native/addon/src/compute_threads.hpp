#pragma once

#include <chrono>
#include <string>

#include "thread_pool.hpp"

namespace tds {

/** How many of ggml's threads compute a model. */
struct ThreadOptions {
    /** While other work needs the machine. */
    int fewest = 1;
    /** While none does. */
    int most = 1;
    /** The file with the CPU times of the machine, in the form of Linux's `/proc/stat`. */
    std::string cpu_times = "/proc/stat";
};

/**
 * Chooses the number of threads for each decode of a model: the most while nothing else needs the machine, the fewest
 * otherwise. ggml's threads wait for each other many times a decode. So a thread that shares its core with other work
 * delays all of them, by several times where the machine is full.
 *
 * Other work is the CPU time of the machine without that of the decodes: other processes, and other threads of this
 * one. Where the system does not tell it, the fewest threads compute. Used by the inference thread alone. The creator
 * has loaded the backends and holds their mutex.
 */
class ComputeThreads {
  public:
    explicit ComputeThreads(const ThreadOptions & options);

    int most() const { return options_.most; }

    /** The threads of one decode, from before it until after it. */
    class Turn {
      public:
        explicit Turn(ComputeThreads & threads);
        ~Turn();
        Turn(const Turn &) = delete;
        Turn & operator=(const Turn &) = delete;

        int count() const { return count_; }
        /** Returns null for one thread. */
        ggml_threadpool_t pool() const;

      private:
        ComputeThreads & threads_;
        std::chrono::steady_clock::time_point start_;
        int count_;
    };

  private:
    /** CPU times in seconds: of the machine, of this process, and of decodes. */
    struct Times {
        std::chrono::steady_clock::time_point at;
        double machine = 0;
        double process = 0;
        double decodes = 0;
    };

    int choose();
    /** Returns false where the system does not tell the machine's time. */
    bool read(Times & times) const;

    ThreadOptions options_;
    ThreadPool fewest_;
    /** Without threads where it would be the same. */
    ThreadPool most_;
    int count_;
    double decodes_ = 0;
    Times last_;
};

}  // namespace tds
