// Random orders.
#pragma once
#include <cstdint>
#include <vector>

namespace burin::data {
/// The numbers 0 … n-1 in an order that the seed and the epoch determine.
std::vector<int64_t> shuffled(int64_t n, uint64_t seed, uint64_t epoch);
} // namespace burin::data
