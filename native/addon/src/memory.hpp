#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace tds {

/** Bytes of a line of the CPU's caches. */
constexpr size_t CACHE_LINE = 64;

template <typename Count>
constexpr Count round_up(Count count, Count multiple) {
    return (count + multiple - 1) / multiple * multiple;
}

/** Asks for bytes to be brought into a level of the CPU's caches, 1 or 2. They need not exist. */
template <int Level>
inline void prefetch(const void * from, size_t bytes) {
    const auto * line = static_cast<const char *>(from);
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(line + i, 0, 4 - Level);
}

struct Freed {
    void operator()(void * memory) const { std::free(memory); }
};
using Bytes = std::unique_ptr<uint8_t[], Freed>;

/** Returns `size` bytes, rounded up to and starting on a multiple of `alignment`. Throws std::bad_alloc. */
Bytes allocate_aligned(size_t size, size_t alignment);

/**
 * Memory in pages of 2 MiB, where the system has them. Weights are read from end to end for each batch, and with small
 * pages the CPU looks up an address for each 4 KiB.
 */
class LargePages {
  public:
    /** Returns memory that starts on a cache line and is freed with this object. Throws std::bad_alloc. */
    uint8_t * take(size_t size);

  private:
    std::vector<Bytes> chunks_;
    uint8_t * next_ = nullptr;
    size_t left_ = 0;
};

}  // namespace tds
