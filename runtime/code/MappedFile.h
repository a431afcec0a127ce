// Files mapped into memory.
#pragma once
#include "runtime/format/Archive.h"
#include <memory>
#include <string>

namespace burin::rt {

/// Maps a whole file read-only; the owner unmaps it.
Status mapFile(const std::string &path, Bytes &bytes, std::shared_ptr<const void> &owner);

} // namespace burin::rt
