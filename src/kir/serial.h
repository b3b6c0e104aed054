// A kernel as bytes: how candidates hand kernels on, what artefacts hold and what kernel hashes cover.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kir/ir.h"

namespace tern::kir {

inline constexpr uint32_t kSerialVersion = 3;

// Deterministic, little-endian, the same on every host.
std::vector<std::byte> serialize(const Kernel& kernel);
// Code::malformed with the offset where the bytes are no kernel of this version. Memory taken is bounded by the bytes
// given. The result is structurally sound (indices in range); verify() says whether it means something.
Result<Kernel> deserialize(std::span<const std::byte> bytes);
// Of the serial form.
Hash kernel_hash(const Kernel& kernel);

}  // namespace tern::kir
