#include "memory.hpp"

#include <algorithm>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tds {

namespace {

constexpr size_t PAGE = 2 << 20;
/** A chunk's end that nothing fits in is not used. */
constexpr size_t CHUNK = 4 * PAGE;

}  // namespace

Bytes allocate_aligned(size_t size, size_t alignment) {
    auto * bytes = static_cast<uint8_t *>(std::aligned_alloc(alignment, round_up(size, alignment)));
    if (!bytes) throw std::bad_alloc();
    return Bytes(bytes);
}

uint8_t * LargePages::take(size_t size) {
    size = round_up(size, CACHE_LINE);
    if (size > left_) {
        const size_t chunk = round_up(std::max(size, CHUNK), PAGE);
        next_ = chunks_.emplace_back(allocate_aligned(chunk, PAGE)).get();
        left_ = chunk;
#if defined(__linux__)
        // Where the system refuses, the pages are small.
        madvise(next_, chunk, MADV_HUGEPAGE);
#endif
    }
    uint8_t * taken = next_;
    next_ += size;
    left_ -= size;
    return taken;
}

}  // namespace tds
