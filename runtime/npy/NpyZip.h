// NumPy's .npz: a zip archive of .npy files, stored or deflated. Needs zlib.
#pragma once
#include "runtime/npy/Npy.h"
#include <utility>

namespace burin::rt {

using NamedArrays = std::vector<std::pair<std::string, NpyArray>>;

/// All arrays of an archive in order, with names without ".npy". Accepts untrusted bytes: allocations are bounded by
/// the maximum expansion of deflate.
std::optional<NamedArrays> readNpz(std::span<const std::byte> file, std::string &error);

/// Equal arrays yield equal bytes: entries carry no time.
std::vector<std::byte> writeNpz(const NamedArrays &arrays, bool compress);

} // namespace burin::rt
