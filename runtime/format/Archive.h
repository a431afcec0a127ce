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

/// An artifact as bytes. codeImages[i] belongs to artifact.codes[i], whose offset and bytes are filled in.
std::vector<std::byte> writeArtifact(Artifact &artifact, std::span<const std::vector<std::byte>> codeImages,
                                     Bytes weights);
/// The same for weights that are written when it is known where they go, without holding them twice. What is left out
/// is zero.
std::vector<std::byte> writeArtifact(Artifact &artifact, std::span<const std::vector<std::byte>> codeImages,
                                     uint64_t weightBytes,
                                     const std::function<void(std::span<std::byte>)> &writeWeights);

/// The same, straight to a file, without holding the weights twice. The file appears whole or not at all.
Status saveArtifact(const std::string &path, Artifact &artifact, std::span<const std::vector<std::byte>> codeImages,
                    Bytes weights);

/// Replaces `path` by these bytes: temporary file beside it, fsync, rename.
Status writeFile(const std::string &path, Bytes bytes);
/// The same for bytes that are in several places.
Status writeFile(const std::string &path, std::span<const Bytes> parts);

/// A parsed and validated artifact. The spans point into the bytes given to parseArtifact.
struct ArtifactView {
  Artifact artifact;
  std::vector<Bytes> code; // one per artifact.codes
  Bytes weights;
};

enum class WeightCheck { Verify, Trust };

/// Treats every byte as hostile. On success every index, size and live range in `out.artifact` can be trusted;
/// code images are checked when they are mapped (Elf.h). WeightCheck::Trust skips the checksum of the weights (and
/// so does not touch their pages); wrong weights then give wrong numbers, never an out-of-bounds access.
Status parseArtifact(Bytes file, WeightCheck check, ArtifactView &out);

/// What the executor relies on: every index in range, well-formed expressions, operands live when used.
Status validate(const Artifact &artifact, uint64_t weightBytes);

} // namespace burin::rt
