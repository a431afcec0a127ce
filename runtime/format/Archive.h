// The artifact as a file: header, section table, META, one CODE per target, WEIGHTS.
//
//   header    "BURINPLT", u32 version, u32 checksum of header and table (this field as 0), u64 size of the file,
//             u32 number of sections, u32 0
//   table     per section: u32 kind, u32 checksum, u64 offset, u64 size
//   META      the Artifact record (Artifact.h), 64-byte aligned
//   CODE…     the ELF images in the order of Artifact::codes, 64-byte aligned
//   WEIGHTS   4096-byte aligned, so that they can be mapped; last, may be empty
//
// Bytes between sections are zero. The same input gives the same bytes.
#pragma once
#include "runtime/format/Artifact.h"
#include "runtime/support/Status.h"
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace burin::rt {

using Bytes = std::span<const std::byte>;

/// Serialises an artifact. codeImages[i] belongs to artifact.codes[i], whose offset and bytes are set.
std::vector<std::byte> writeArtifact(Artifact &artifact, std::span<const std::vector<std::byte>> codeImages,
                                     Bytes weights);
/// Lets `writeWeights` write the weights to their place in the file, which avoids a second copy. Bytes that it does not
/// write are zero.
std::vector<std::byte> writeArtifact(Artifact &artifact, std::span<const std::vector<std::byte>> codeImages,
                                     uint64_t weightBytes,
                                     const std::function<void(std::span<std::byte>)> &writeWeights);

/// Serialises to a file, without a second copy of the weights. The file is written completely or not at all.
Status saveArtifact(const std::string &path, Artifact &artifact, std::span<const std::vector<std::byte>> codeImages,
                    Bytes weights);

/// Replaces the file at `path`: writes a temporary file beside it, fsync, rename.
Status writeFile(const std::string &path, Bytes bytes);
/// Replaces the file at `path` by the concatenation of `parts`.
Status writeFile(const std::string &path, std::span<const Bytes> parts);

/// A parsed and validated artifact. The spans point into the bytes passed to parseArtifact.
struct ArtifactView {
  Artifact artifact;
  std::vector<Bytes> code; // one per artifact.codes
  Bytes weights;
};

enum class WeightCheck { Verify, Trust };

/// Parses untrusted bytes. On success every index, size and live range in `out.artifact` is valid; code images are
/// checked when they are mapped (Elf.h). WeightCheck::Trust skips the checksum of the weights, and so does not read
/// their pages; damaged weights then yield wrong numbers, but never an out-of-bounds access.
Status parseArtifact(Bytes file, WeightCheck check, ArtifactView &out);

/// Checks everything that the executor relies on: indices in range, well-formed expressions, operands live where used.
Status validate(const Artifact &artifact, uint64_t weightBytes);

} // namespace burin::rt
