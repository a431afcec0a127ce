#include "runtime/format/Archive.h"
#include "runtime/support/Checksum.h"
#include "runtime/support/Cursor.h"
#include "runtime/support/FileReplacement.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <cstdio>
#include <cstring>

namespace burin::rt {
namespace {

constexpr char kMagic[8] = {'B', 'U', 'R', 'I', 'N', 'P', 'L', 'T'};
constexpr uint64_t kSectionAlign = 64, kWeightsAlign = 4096;
constexpr uint32_t kMaxSections = 64;

enum class SectionKind : uint32_t { Meta = 1, Code = 2, Weights = 3 };

struct Header {
  char magic[8];
  uint32_t version, check;
  uint64_t fileBytes;
  uint32_t sections, reserved;
};
static_assert(sizeof(Header) == 32);

struct Section {
  SectionKind kind;
  uint32_t check;
  uint64_t offset, bytes;
};
static_assert(sizeof(Section) == 24);

uint64_t alignUp(uint64_t x, uint64_t a) { return (x + a - 1) / a * a; }

/// A range of bytes and its offset in the file.
struct Piece {
  uint64_t offset;
  Bytes bytes;
};

/// Offsets of all sections.
struct Layout {
  std::vector<Section> table;
  std::vector<std::byte> meta;
  uint64_t fileBytes = 0;
};

std::vector<std::byte> encodeMeta(Artifact &artifact) {
  Writer writer;
  fields(writer, artifact);
  if (!artifact.products.empty())
    writer(artifact.products);
  return std::move(writer.bytes);
}

// Offsets have a fixed width, so the size of META does not depend on the offset of the code.
Layout layOut(Artifact &artifact, std::span<const std::vector<std::byte>> images, uint64_t weightBytes) {
  Layout out;
  out.table.resize(images.size() + 2);
  out.fileBytes = sizeof(Header) + out.table.size() * sizeof(Section);
  auto place = [&](size_t i, SectionKind kind, uint64_t align, uint64_t bytes) {
    out.table[i] = {kind, 0, alignUp(out.fileBytes, align), bytes};
    out.fileBytes = out.table[i].offset + bytes;
  };
  place(0, SectionKind::Meta, kSectionAlign, encodeMeta(artifact).size());
  for (size_t i = 0; i < images.size(); ++i) {
    place(i + 1, SectionKind::Code, kSectionAlign, images[i].size());
    artifact.codes[i].offset = out.table[i + 1].offset;
    artifact.codes[i].bytes = out.table[i + 1].bytes;
  }
  place(out.table.size() - 1, SectionKind::Weights, kWeightsAlign, weightBytes);
  out.meta = encodeMeta(artifact);
  return out;
}

/// The sections in file order.
std::vector<Piece> sectionsOf(const Layout &layout, std::span<const std::vector<std::byte>> images, Bytes weights) {
  std::vector<Piece> pieces{{layout.table[0].offset, layout.meta}};
  for (size_t i = 0; i < images.size(); ++i)
    pieces.push_back({layout.table[i + 1].offset, images[i]});
  pieces.push_back({layout.table.back().offset, weights});
  return pieces;
}

/// Header and section table, with the checksums of the sections.
std::vector<std::byte> headOf(Layout &layout, uint32_t version, std::span<const Piece> sections) {
  std::vector<Section> &table = layout.table;
  for (size_t i = 0; i < table.size(); ++i)
    table[i].check = checksum(sections[i].bytes);
  Header header{{}, version, 0, layout.fileBytes, uint32_t(table.size()), 0};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::vector<std::byte> head(sizeof header + table.size() * sizeof(Section));
  std::memcpy(head.data(), &header, sizeof header);
  std::memcpy(head.data() + sizeof header, table.data(), table.size() * sizeof(Section));
  header.check = checksum(head);
  std::memcpy(head.data(), &header, sizeof header);
  return head;
}

Status ioError(const char *what, const std::string &path, int error) {
  return {ErrorCode::Io, text("cannot ", what, " ", path, ": ", std::strerror(error))};
}

Status writePieces(const std::string &path, std::span<const Piece> pieces) {
  FileReplacement file(path);
  if (!file.isOpen())
    return ioError("create", file.at(), file.problem());
  static constexpr std::byte zeros[kWeightsAlign] = {};
  uint64_t at = 0;
  for (const Piece &piece : pieces) {
    if (!file.write(Bytes(zeros).first(piece.offset - at)) || !file.write(piece.bytes))
      return ioError("write", file.at(), file.problem());
    at = piece.offset + piece.bytes.size();
  }
  return file.commit() ? Status() : ioError("write", file.at(), file.problem());
}

Status bad(std::string message) { return {ErrorCode::BadArtifact, std::move(message)}; }

Status truncated(uint64_t have, uint64_t want) {
  return bad(text("the artifact is truncated: it has ", have, " bytes and should have ", want,
                  "\n  copy or compile it again"));
}

Status mismatch(const std::string &section) {
  return bad(text("the artifact is damaged: checksum mismatch in its ", section, "\n  copy or compile it again"));
}

Status parseHeader(Bytes file, Header &header, std::vector<Section> &table) {
  size_t magicBytes = std::min(file.size(), sizeof kMagic);
  if (magicBytes && std::memcmp(file.data(), kMagic, magicBytes) != 0)
    return bad("not a burin artifact: it does not start with BURINPLT\n  make one with: burin compile model.burin -o "
               "model.plate");
  if (file.size() < sizeof header)
    return truncated(file.size(), sizeof header);
  std::memcpy(&header, file.data(), sizeof header);
  if (header.version != kArtifactVersion && header.version != kVersionWithoutProducts)
    return bad(text("the artifact has format version ", header.version, ", this runtime reads version ",
                    kArtifactVersion, "\n  compile it again with the burin of this runtime"));
  if (header.sections < 2 || header.sections > kMaxSections)
    return mismatch("header");
  size_t headBytes = sizeof header + header.sections * sizeof(Section);
  if (file.size() < headBytes)
    return truncated(file.size(), headBytes);
  std::vector<std::byte> head(file.begin(), file.begin() + headBytes);
  std::memset(head.data() + offsetof(Header, check), 0, sizeof header.check);
  if (checksum(head) != header.check)
    return mismatch("header");
  if (header.fileBytes != file.size()) {
    if (header.fileBytes > file.size())
      return truncated(file.size(), header.fileBytes);
    return bad(
        text("the artifact has ", file.size() - header.fileBytes, " bytes after its end\n  copy or compile it again"));
  }
  table.resize(header.sections);
  std::memcpy(table.data(), file.data() + sizeof header, table.size() * sizeof(Section));
  return {};
}

bool allZero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte(0); });
}

// Checks that META, CODE…, WEIGHTS are in this order, inside the file, at the offsets that the writer uses, with zeros
// between them.
Status checkTable(Bytes file, std::span<const Section> table) {
  uint64_t end = sizeof(Header) + table.size() * sizeof(Section);
  for (size_t i = 0; i < table.size(); ++i) {
    SectionKind kind = i == 0 ? SectionKind::Meta : i + 1 == table.size() ? SectionKind::Weights : SectionKind::Code;
    const Section &s = table[i];
    if (s.kind != kind || s.offset != alignUp(end, kind == SectionKind::Weights ? kWeightsAlign : kSectionAlign) ||
        s.offset > file.size() || s.bytes > file.size() - s.offset || !allZero(file.subspan(end, s.offset - end)))
      return bad(text("the artifact is malformed: section ", i, " of its table is out of place"));
    end = s.offset + s.bytes;
  }
  return end == file.size() ? Status() : bad("the artifact is malformed: its table does not cover it");
}

} // namespace

std::vector<std::byte> writeArtifact(Artifact &artifact, std::span<const std::vector<std::byte>> codeImages,
                                     uint64_t weightBytes,
                                     const std::function<void(std::span<std::byte>)> &writeWeights) {
  Layout layout = layOut(artifact, codeImages, weightBytes);
  std::vector<std::byte> out(layout.fileBytes);
  std::span<std::byte> weights = std::span(out).last(weightBytes);
  writeWeights(weights);
  std::vector<Piece> pieces = sectionsOf(layout, codeImages, weights);
  std::vector<std::byte> head = headOf(layout, artifact.version(), pieces);
  pieces.back() = {0, head}; // the weights have been written in place
  for (const Piece &piece : pieces)
    std::copy(piece.bytes.begin(), piece.bytes.end(), out.begin() + ptrdiff_t(piece.offset));
  return out;
}

std::vector<std::byte> writeArtifact(Artifact &artifact, std::span<const std::vector<std::byte>> codeImages,
                                     Bytes weights) {
  return writeArtifact(artifact, codeImages, weights.size(),
                       [&](std::span<std::byte> to) { std::copy(weights.begin(), weights.end(), to.begin()); });
}

Status saveArtifact(const std::string &path, Artifact &artifact, std::span<const std::vector<std::byte>> codeImages,
                    Bytes weights) {
  Layout layout = layOut(artifact, codeImages, weights.size());
  std::vector<Piece> pieces = sectionsOf(layout, codeImages, weights);
  std::vector<std::byte> head = headOf(layout, artifact.version(), pieces);
  pieces.insert(pieces.begin(), {0, head});
  return writePieces(path, pieces);
}

Status writeFile(const std::string &path, Bytes bytes) { return writeFile(path, std::span(&bytes, 1)); }

Status writeFile(const std::string &path, std::span<const Bytes> parts) {
  std::vector<Piece> pieces;
  for (uint64_t at = 0; Bytes part : parts) {
    pieces.push_back({at, part});
    at += part.size();
  }
  return writePieces(path, pieces);
}

Status parseArtifact(Bytes file, WeightCheck check, ArtifactView &out) {
  Header header;
  std::vector<Section> table;
  if (Status s = parseHeader(file, header, table); !s.ok())
    return s;
  if (Status s = checkTable(file, table); !s.ok())
    return s;
  auto section = [&](size_t i) { return file.subspan(table[i].offset, table[i].bytes); };

  if (checksum(section(0)) != table[0].check)
    return mismatch("plan (META)");
  Reader reader(section(0));
  fields(reader, out.artifact);
  if (header.version == kArtifactVersion)
    reader(out.artifact.products);
  if (!reader.ok() || reader.remaining())
    return bad("the artifact is malformed: its plan (META) does not parse");
  const std::vector<Code> &codes = out.artifact.codes;
  if (codes.size() + 2 != table.size())
    return bad(text("the artifact is malformed: ", codes.size(), " targets, but ", table.size() - 2, " code sections"));
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i].offset != table[i + 1].offset || codes[i].bytes != table[i + 1].bytes)
      return bad(text("the artifact is malformed: the code of ", codes[i].target, " is not where its plan says"));
    out.code.push_back(section(i + 1));
    if (checksum(out.code.back()) != table[i + 1].check)
      return mismatch(text("code for ", codes[i].target));
  }
  out.weights = section(table.size() - 1);
  if (check == WeightCheck::Verify && checksum(out.weights) != table.back().check)
    return mismatch("weights");
  return validate(out.artifact, out.weights.size());
}

} // namespace burin::rt
