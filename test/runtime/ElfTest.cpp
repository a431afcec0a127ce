// Mapping of machine code: which images are refused, and that malicious ones do no harm (none of their code runs).
#include "runtime/code/Elf.h"
#include "test/runtime/Checks.h"
#include <cmath>
#include <cstring>
#include <elf.h>
#include <random>

using namespace burin::rt;
using namespace burin::rt::test;

namespace {

Status loadImage(std::vector<std::byte> elf) {
  CodeImage image;
  return CodeImage::load(elf, image);
}

Elf64_Phdr *segments(std::vector<std::byte> &elf, size_t &count) {
  auto *header = reinterpret_cast<Elf64_Ehdr *>(elf.data());
  count = header->e_phnum;
  return reinterpret_cast<Elf64_Phdr *>(elf.data() + header->e_phoff);
}

/// Loads the image after changing its first segment of this kind.
Status loadChanged(uint32_t type, uint32_t flags, void (*change)(Elf64_Phdr &)) {
  std::vector<std::byte> elf = kernelImage();
  size_t count;
  Elf64_Phdr *all = segments(elf, count);
  for (size_t i = 0; i < count; ++i)
    if (all[i].p_type == type && (all[i].p_flags & flags) == flags) {
      change(all[i]);
      return loadImage(elf);
    }
  FAIL("no such segment");
  return {};
}

} // namespace

TEST_CASE("only executable addresses of an image are functions") {
  CodeImage image;
  requireOk(CodeImage::load(kernelImage(), image));
  CHECK(image.function(symbolAddress(kernelImage(), "affine")));
  CHECK_FALSE(image.function(0));
  CHECK_FALSE(image.function(uint64_t(1) << 40));
  CodeImage moved = std::move(image);
  CHECK(moved.function(symbolAddress(kernelImage(), "affine")));
  CHECK_FALSE(CodeImage().function(0));
}

TEST_CASE("an import that the runtime does not offer is refused by name") {
  std::vector<std::byte> elf = kernelImage();
  std::string bytes(reinterpret_cast<char *>(elf.data()), elf.size());
  size_t at = bytes.find(std::string("\0expf\0", 6));
  REQUIRE(at != std::string::npos);
  std::memcpy(elf.data() + at + 1, "exec", 4);
  Status s = loadImage(elf);
  REQUIRE(s.code() == ErrorCode::Unsupported);
  CHECK(contains(s.message(), "'exec'"));
}

TEST_CASE("imported functions are the math library's") {
  CHECK(reinterpret_cast<double (*)(double)>(importedFunction("expm1"))(.5) == std::expm1(.5));
  CHECK(reinterpret_cast<float (*)(float)>(importedFunction("erff"))(.5f) == std::erf(.5f));
  CHECK(reinterpret_cast<float (*)(float, float)>(importedFunction("powf"))(3, 4) == 81);
  CHECK(reinterpret_cast<double (*)(double)>(importedFunction("roundeven"))(2.5) == 2);
  for (const char *name : {"system", "malloc", "exp ", "", "expff"})
    CHECK(importedFunction(name) == nullptr);
}

TEST_CASE("a malformed image is refused") {
  CHECK_FALSE(loadImage({}).ok());
  CHECK_FALSE(loadImage(std::vector<std::byte>(64)).ok());
  CHECK(contains(loadChanged(PT_LOAD, PF_X, [](Elf64_Phdr &p) { p.p_flags |= PF_W; }).message(),
                 "writable and executable"));
  CHECK(contains(loadChanged(PT_LOAD, 0, [](Elf64_Phdr &p) { p.p_offset = ~uint64_t(0); }).message(),
                 "outside the image"));
  CHECK(contains(loadChanged(PT_LOAD, 0, [](Elf64_Phdr &p) { p.p_filesz = p.p_memsz + 1; }).message(),
                 "outside the image"));
  CHECK(contains(loadChanged(PT_LOAD, PF_X, [](Elf64_Phdr &p) { p.p_vaddr = 0; }).message(), "out of order"));
  CHECK(contains(loadChanged(PT_LOAD, PF_W, [](Elf64_Phdr &p) { p.p_memsz = uint64_t(1) << 50; }).message(), "1 GiB"));
  CHECK(contains(loadChanged(PT_LOAD, PF_W, [](Elf64_Phdr &p) { p.p_flags = PF_R; }).message(), "writable data"));
  CHECK(contains(loadChanged(PT_DYNAMIC, 0, [](Elf64_Phdr &p) { p.p_type = PT_TLS; }).message(), "thread-local"));
  CHECK(contains(loadChanged(PT_DYNAMIC, 0, [](Elf64_Phdr &p) { p.p_vaddr = 1 << 29; }).message(),
                 "dynamic section outside"));
}

TEST_CASE("a damaged image is refused or mapped, without harm") {
  std::mt19937 random(11);
  const std::vector<std::byte> &original = kernelImage();
  // The bytes that the loader interprets: headers, dynamic section, symbols, relocations. The rest is mostly padding.
  std::vector<size_t> interesting;
  for (size_t i = 0; i < original.size(); ++i)
    if (i < 1024 || original[i] != std::byte(0))
      interesting.push_back(i);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> elf = original;
    for (uint32_t changes = 1 + random() % 4; changes--;)
      elf[interesting[random() % interesting.size()]] = std::byte(random());
    refused += !loadImage(elf).ok();
  }
  CHECK(refused > 1000);
  for (size_t size = 0; size < original.size(); size += 61)
    CHECK_FALSE(loadImage({original.begin(), original.begin() + long(std::min(size, size_t(4096)))}).ok());
}
