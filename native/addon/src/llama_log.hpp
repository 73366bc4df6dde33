#pragma once

#include <string>

namespace tds {

/**
 * Keeps llama.cpp's log to ourselves: it can contain tokens of a record, and is never written. Once for the process,
 * before backends are loaded.
 */
void silence_log();

/**
 * Keeps the first error that llama.cpp logs on this thread while it lives: only the log says why a file is refused. The
 * log is one for the process, and models that other threads evaluate and free write to it at any time. To be made with
 * the backends' mutex held.
 */
class FirstLoggedError {
  public:
    FirstLoggedError();
    ~FirstLoggedError();
    FirstLoggedError(const FirstLoggedError &) = delete;
    FirstLoggedError & operator=(const FirstLoggedError &) = delete;

    /** The first line of it; empty where no error was logged. */
    std::string text() const { return text_.substr(0, text_.find('\n')); }

  private:
    std::string text_;
};

}  // namespace tds
