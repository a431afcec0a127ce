// NumPy's .npz: a zip archive of .npy files, stored or deflated. Needs zlib.
#pragma once
#include "runtime/npy/Npy.h"
#include <utility>

namespace burin::rt {

using NamedArrays = std::vector<std::pair<std::string, NpyArray>>;

/// All arrays of an archive, in its order, named without ".npy". Reads hostile bytes safely: what it allocates is
/// bounded by what deflate can expand the given bytes to.
std::optional<NamedArrays> readNpz(std::span<const std::byte> file, std::string &error);

/// The same arrays give the same bytes: entries carry no time.
std::vector<std::byte> writeNpz(const NamedArrays &arrays, bool compress);

} // namespace burin::rt
