#include "runtime/code/Elf.h"
#include "runtime/support/Format.h"
#include <cstring>
#include <elf.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace burin::rt {
namespace {

constexpr uint64_t kMaxImageBytes = uint64_t(1) << 30;

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#else
constexpr uint16_t kMachine = EM_AARCH64;
#endif

/// The value that a relocation stores. Each architecture numbers these kinds differently.
enum class Reloc { Unknown, Relative, Symbol };

Reloc relocKind(uint32_t type) {
#if defined(__x86_64__)
  switch (type) {
  case R_X86_64_RELATIVE:
    return Reloc::Relative;
  case R_X86_64_64:
  case R_X86_64_GLOB_DAT:
  case R_X86_64_JUMP_SLOT:
    return Reloc::Symbol;
  }
#else
  switch (type) {
  case R_AARCH64_RELATIVE:
    return Reloc::Relative;
  case R_AARCH64_ABS64:
  case R_AARCH64_GLOB_DAT:
  case R_AARCH64_JUMP_SLOT:
    return Reloc::Symbol;
  }
#endif
  return Reloc::Unknown;
}

Status bad(const std::string &what) {
  return {ErrorCode::BadArtifact, "the machine code of the artifact is malformed: " + what};
}

} // namespace

/// Loads one image. Addresses are virtual addresses of the image, starting at 0. Memory is accessed only by `at` and by
/// checked copies.
class ElfLoader {
public:
  ElfLoader(std::span<const std::byte> file, CodeImage &image)
      : file(file), image(image), page(uint64_t(::sysconf(_SC_PAGESIZE))) {}

  Status run() {
    if (Status s = readSegments(); !s.ok())
      return s;
    if (Status s = mapSegments(); !s.ok())
      return s;
    if (Status s = relocate(); !s.ok())
      return s;
    return protect();
  }

private:
  std::span<const std::byte> file;
  CodeImage &image;
  const uint64_t page;
  std::vector<Elf64_Phdr> loads;
  Elf64_Phdr dynamic{}, relro{};

  struct Tables {
    uint64_t symbols = 0, strings = 0, stringBytes = 0;
    uint64_t rela = 0, relaBytes = 0, plt = 0, pltBytes = 0;
  };

  uint64_t pageDown(uint64_t x) const { return x & ~(page - 1); }
  uint64_t pageUp(uint64_t x) const { return pageDown(x + page - 1); }

  Status readSegments() {
    Elf64_Ehdr header;
    if (file.size() < sizeof header)
      return bad("too short for an ELF header");
    std::memcpy(&header, file.data(), sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN)
      return bad("not a 64-bit little-endian shared ELF image");
    if (header.e_machine != kMachine)
      return bad(text("made for ELF machine ", header.e_machine, ", this one is ", kMachine));
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > file.size() ||
        header.e_phnum > (file.size() - header.e_phoff) / sizeof(Elf64_Phdr))
      return bad("program headers outside the image");
    for (size_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof segment, sizeof segment);
      if (Status s = addSegment(segment); !s.ok())
        return s;
    }
    return loads.empty() ? bad("nothing to load") : Status();
  }

  Status addSegment(const Elf64_Phdr &segment) {
    if (segment.p_vaddr > kMaxImageBytes || segment.p_memsz > kMaxImageBytes - segment.p_vaddr)
      return bad("a segment is larger than 1 GiB");
    if (segment.p_type == PT_TLS)
      return bad("thread-local data");
    if (segment.p_type == PT_DYNAMIC)
      dynamic = segment;
    if (segment.p_type == PT_GNU_RELRO)
      relro = segment;
    if (segment.p_type != PT_LOAD)
      return {};
    if (segment.p_offset > file.size() || segment.p_filesz > file.size() - segment.p_offset ||
        segment.p_filesz > segment.p_memsz)
      return bad("a segment reaches outside the image");
    if ((segment.p_flags & PF_W) && (segment.p_flags & PF_X))
      return bad("a segment is writable and executable");
    if (!loads.empty() && pageDown(segment.p_vaddr) < pageUp(loads.back().p_vaddr + loads.back().p_memsz))
      return bad("segments share a page or are out of order");
    if (segment.p_flags & PF_X) {
      if (image.executable.second)
        return bad("more than one executable segment");
      image.executable = {segment.p_vaddr, segment.p_vaddr + segment.p_memsz};
    }
    loads.push_back(segment);
    return {};
  }

  Status mapSegments() {
    image.size = pageUp(loads.back().p_vaddr + loads.back().p_memsz);
    if (image.size == 0)
      return bad("nothing to load");
    void *memory =
        ::mmap(nullptr, image.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      return {ErrorCode::OutOfMemory, text("cannot map ", image.size, " bytes of machine code")};
    }
    image.base = static_cast<std::byte *>(memory);
    for (const Elf64_Phdr &s : loads)
      if (s.p_filesz)
        std::memcpy(image.base + s.p_vaddr, file.data() + s.p_offset, s.p_filesz);
    return {};
  }

  /// Reads a T at an address; returns false if it is outside of the image.
  template <class T> bool at(uint64_t address, T &out) const {
    if (address > image.size || sizeof(T) > image.size - address)
      return false;
    std::memcpy(&out, image.base + address, sizeof(T));
    return true;
  }

  Status readDynamic(Tables &t) {
    for (uint64_t i = 0; i < dynamic.p_memsz / sizeof(Elf64_Dyn); ++i) {
      Elf64_Dyn entry;
      if (!at(dynamic.p_vaddr + i * sizeof entry, entry))
        return bad("dynamic section outside the image");
      uint64_t value = entry.d_un.d_val;
      switch (entry.d_tag) {
      case DT_NULL:
        return {};
      case DT_SYMTAB:
        t.symbols = value;
        break;
      case DT_STRTAB:
        t.strings = value;
        break;
      case DT_STRSZ:
        t.stringBytes = value;
        break;
      case DT_RELA:
        t.rela = value;
        break;
      case DT_RELASZ:
        t.relaBytes = value;
        break;
      case DT_JMPREL:
        t.plt = value;
        break;
      case DT_PLTRELSZ:
        t.pltBytes = value;
        break;
      case DT_NEEDED:
        return bad("it needs a shared library");
      case DT_INIT:
      case DT_INIT_ARRAY:
      case DT_PREINIT_ARRAY:
        return bad("it has code to run at load");
      case DT_REL:
      case DT_RELR:
      case DT_TEXTREL:
        return bad(text("relocations of an unsupported form (tag ", entry.d_tag, ")"));
      }
    }
    return {};
  }

  Status relocate() {
    Tables t;
    if (Status s = readDynamic(t); !s.ok())
      return s;
    if (Status s = relocateTable(t, t.rela, t.relaBytes); !s.ok())
      return s;
    return relocateTable(t, t.plt, t.pltBytes);
  }

  Status relocateTable(const Tables &t, uint64_t table, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes / sizeof(Elf64_Rela); ++i) {
      Elf64_Rela r;
      if (!at(table + i * sizeof r, r))
        return bad("relocations outside the image");
      if (!writable(r.r_offset))
        return bad("a relocation outside the writable data");
      uint64_t value = reinterpret_cast<uint64_t>(image.base) + uint64_t(r.r_addend);
      switch (relocKind(uint32_t(ELF64_R_TYPE(r.r_info)))) {
      case Reloc::Relative:
        break;
      case Reloc::Symbol:
        if (Status s = resolve(t, ELF64_R_SYM(r.r_info), value); !s.ok())
          return s;
        value += uint64_t(r.r_addend);
        break;
      case Reloc::Unknown:
        return bad(text("relocation type ", ELF64_R_TYPE(r.r_info)));
      }
      std::memcpy(image.base + r.r_offset, &value, sizeof value);
    }
    return {};
  }

  bool writable(uint64_t address) const {
    for (const Elf64_Phdr &s : loads)
      if ((s.p_flags & PF_W) && s.p_memsz >= 8 && address >= s.p_vaddr && address - s.p_vaddr <= s.p_memsz - 8)
        return true;
    return false;
  }

  Status resolve(const Tables &t, uint64_t index, uint64_t &value) {
    Elf64_Sym symbol;
    if (!at(t.symbols + index * sizeof symbol, symbol))
      return bad("a symbol outside the image");
    if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
      return bad("a symbol resolved by code");
    if (symbol.st_shndx != SHN_UNDEF) {
      value = reinterpret_cast<uint64_t>(image.base) + symbol.st_value;
      return {};
    }
    std::string name = stringAt(t, symbol.st_name);
    if (void *function = importedFunction(name)) {
      value = reinterpret_cast<uint64_t>(function);
      return {};
    }
    return {ErrorCode::Unsupported,
            text("the machine code of the artifact imports '", name,
                 "', which the runtime does not offer\n  compile it again with the burin of this runtime")};
  }

  std::string stringAt(const Tables &t, uint64_t offset) const {
    std::string name;
    char c;
    while (offset < t.stringBytes && name.size() < 100 && at(t.strings + offset++, c) && c)
      name += c >= ' ' && c <= '~' ? c : '?';
    return name;
  }

  Status protect() {
    for (const Elf64_Phdr &s : loads) {
      int protection =
          (s.p_flags & PF_R ? PROT_READ : 0) | (s.p_flags & PF_W ? PROT_WRITE : 0) | (s.p_flags & PF_X ? PROT_EXEC : 0);
      if (!protectRange(pageDown(s.p_vaddr), pageUp(s.p_vaddr + s.p_memsz), protection))
        return {ErrorCode::Unsupported, "this system does not let a process make memory executable"};
    }
    __builtin___clear_cache(reinterpret_cast<char *>(image.base), reinterpret_cast<char *>(image.base + image.size));
    // RELRO: written by relocation, constant afterwards.
    if (relro.p_memsz && writable(relro.p_vaddr) && relro.p_vaddr + relro.p_memsz <= image.size)
      protectRange(pageDown(relro.p_vaddr), pageDown(relro.p_vaddr + relro.p_memsz), PROT_READ);
    return {};
  }

  bool protectRange(uint64_t begin, uint64_t end, int protection) {
    return begin >= end || ::mprotect(image.base + begin, end - begin, protection) == 0;
  }
};

CodeImage::~CodeImage() {
  if (base)
    ::munmap(base, size);
}

Status CodeImage::load(std::span<const std::byte> elf, CodeImage &out) {
  CodeImage image;
  if (Status s = ElfLoader(elf, image).run(); !s.ok())
    return s;
  out = std::move(image);
  return {};
}

void *CodeImage::function(uint64_t address) const {
  return address >= executable.first && address < executable.second ? base + address : nullptr;
}

} // namespace burin::rt
