#pragma once

#include <string>

namespace tds {

/**
 * Keeps llama.cpp's log to ourselves: it can contain tokens of a record, and is never written. It is called once for
 * the process, before backends are loaded.
 */
void silence_log();

/**
 * Keeps the first error that llama.cpp logs on this thread while it lives, because only the log has the reason for a
 * refused file. Other threads write to the process's one log at any time. The creator holds the backends' mutex.
 */
class FirstLoggedError {
  public:
    FirstLoggedError();
    ~FirstLoggedError();
    FirstLoggedError(const FirstLoggedError &) = delete;
    FirstLoggedError & operator=(const FirstLoggedError &) = delete;

    /** Returns the first line of the error; empty for none. */
    std::string text() const { return text_.substr(0, text_.find('\n')); }

  private:
    std::string text_;
};

}  // namespace tds
