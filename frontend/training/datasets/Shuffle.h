// Random permutations.
#pragma once
#include <cstdint>
#include <vector>

namespace burin::data {
/// A permutation of 0 … n-1 that the seed and the epoch determine.
std::vector<int64_t> shuffled(int64_t n, uint64_t seed, uint64_t epoch);
} // namespace burin::data
