#pragma once

#include <cstddef>
#include <functional>

namespace tds {

/**
 * Runs `work` on a new thread whose stack has at least so many bytes, and waits for it. Only the pages that `work`
 * reaches take memory, until this returns. Throws what `work` throws, and std::runtime_error when there is no room for
 * the stack or the thread cannot be started.
 */
void run_on_large_stack(size_t bytes, const std::function<void()> & work);

}  // namespace tds
