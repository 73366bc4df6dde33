#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace tds {

struct Freed {
    void operator()(void * memory) const { std::free(memory); }
};
using Bytes = std::unique_ptr<uint8_t[], Freed>;

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

/** Returns `size` bytes, rounded up to and starting on a multiple of `alignment`. Throws std::bad_alloc. */
Bytes allocate_aligned(size_t size, size_t alignment);

}  // namespace tds
