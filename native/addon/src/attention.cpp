#include "attention.hpp"

#include "attention_memory.hpp"

namespace tds {

namespace attention {

Scratch::Scratch() : memory_(std::make_unique<Memory>()) {}
Scratch::Scratch(Scratch &&) noexcept = default;
Scratch::~Scratch() = default;

size_t pieces(const Operands & operands) { return row_tiles(operands) * operands.cache_heads; }

void compute(Instructions instructions, const Operands & operands, size_t piece, Scratch & scratch) {
    switch (instructions) {
        case Instructions::AMX:
        case Instructions::AVX512:
            return compute_avx512(operands, piece, *scratch.memory_);
        case Instructions::AVX2:
            return compute_avx2(operands, piece, *scratch.memory_);
        case Instructions::NONE:
            break;
    }
}

}  // namespace attention

}  // namespace tds
