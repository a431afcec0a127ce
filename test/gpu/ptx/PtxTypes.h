// What the instructions of the PTX interpreter have in common.
#pragma once
#include "test/gpu/ptx/PtxRun.h"
#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace burin::test::ptx {

using Half = _Float16;

template <class T> constexpr bool isFloat = std::is_floating_point_v<T> || std::is_same_v<T, Half>;
template <class T> constexpr int kBits = int(sizeof(T)) * 8;
template <class T>
using Unsigned = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T> bool isNan(T x) { return isFloat<T> && x != x; } // NOLINT(misc-redundant-expression)

/// The parts of a name between its points: "add", "s32".
using Parts = std::vector<std::string>;
inline bool has(const Parts &parts, const char *word) { return std::ranges::find(parts, word) != parts.end(); }

/// What has one result from operands of its own type; null for other names.
Run findArithmetic(const Parts &);

/// What a warp does together, and copies that arrive later; null for other names.
Run findWarp(const Parts &, Instruction &);
/// Barriers in shared memory, and what a warpgroup does together; null for other names.
Run findPhases(const Parts &, Instruction &);

} // namespace burin::test::ptx
