// The file format: written artifacts are read back unchanged; damaged ones are refused without a crash.
#include "runtime/support/Checksum.h"
#include "runtime/support/Cursor.h"
#include "test/runtime/Checks.h"
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

namespace {

/// Returns the status of reading these bytes as an ArtifactView and a Program.
Status read(Bytes file) {
  ArtifactView view;
  Status parsed = parseArtifact(file, WeightCheck::Verify, view);
  Program::Ptr program;
  Status loaded = Program::loadMemory(file, nullptr, {}, program);
  REQUIRE((parsed.ok() || !loaded.ok()));
  return loaded;
}

std::string refusal(Bytes file, ErrorCode code) {
  Status s = read(file);
  REQUIRE_FALSE(s.ok());
  CHECK(s.code() == code);
  CHECK(std::count(s.message().begin(), s.message().end(), '\n') < 6);
  return s.message();
}

constexpr size_t kHeaderBytes = 32, kSectionBytes = 24, kHeaderCheck = 12;

template <class T> T peek(Bytes file, size_t at) {
  T x;
  std::memcpy(&x, file.data() + at, sizeof x);
  return x;
}
template <class T> void poke(std::vector<std::byte> &file, size_t at, T x) {
  std::memcpy(file.data() + at, &x, sizeof x);
}
Bytes section(Bytes file, size_t i) {
  size_t entry = kHeaderBytes + i * kSectionBytes;
  return file.subspan(peek<uint64_t>(file, entry + 8), peek<uint64_t>(file, entry + 16));
}
/// Recomputes all checksums, so that later checks are reached.
void reseal(std::vector<std::byte> &file) {
  uint32_t sections = peek<uint32_t>(file, 24);
  for (size_t i = 0; i < sections; ++i)
    poke(file, kHeaderBytes + i * kSectionBytes + 4, checksum(section(file, i)));
  poke(file, kHeaderCheck, uint32_t(0));
  poke(file, kHeaderCheck, checksum(Bytes(file).first(kHeaderBytes + sections * kSectionBytes)));
}

std::vector<std::byte> metaOf(Artifact artifact) {
  Writer writer;
  fields(writer, artifact);
  return writer.bytes;
}

} // namespace

TEST_CASE("an artifact is read as it was written") {
  Model m = threeSteps(5);
  m.a.metadata = {{"graph", "abc"}, {"", ""}};
  std::vector<std::byte> file = m.bytes();
  ArtifactView view;
  requireOk(parseArtifact(file, WeightCheck::Verify, view));
  CHECK(metaOf(view.artifact) == metaOf(m.a));
  REQUIRE(view.code.size() == 1);
  CHECK(std::equal(view.code[0].begin(), view.code[0].end(), kernelImage().begin(), kernelImage().end()));
  CHECK(view.weights.size() == m.weights.size() * 4);
  CHECK((view.weights.data() - file.data()) % 4096 == 0);
}

TEST_CASE("the same artifact gives the same bytes, in memory and in a file") {
  std::vector<std::byte> file = threeSteps(5).bytes();
  CHECK(file == threeSteps(5).bytes());
  Model m = threeSteps(5);
  m.bytes();
  std::string path = "saved-" + std::to_string(::getpid()) + ".plate";
  std::vector<std::vector<std::byte>> images = {kernelImage()};
  requireOk(saveArtifact(path, m.a, images, std::as_bytes(std::span(m.weights))));
  CHECK(readBytes(path) == file);
  Program::Ptr program;
  requireOk(Program::loadFile(path, {}, program));
  CHECK(program->constant(0) != nullptr);
  ::unlink(path.c_str());
}

TEST_CASE("a file that cannot be written is not there") {
  std::vector<std::byte> bytes(10);
  Status s = writeFile("no such folder/x.plate", bytes);
  REQUIRE_FALSE(s.ok());
  CHECK(s.code() == ErrorCode::Io);
  CHECK(contains(s.message(), "no such folder/x.plate"));

  ::mkdir("occupied.plate", 0777); // the rename fails, as a folder has the name
  CHECK_FALSE(writeFile("occupied.plate", bytes).ok());
  CHECK(::access(("occupied.plate.tmp" + std::to_string(::getpid())).c_str(), F_OK) != 0);
  ::rmdir("occupied.plate");
}

TEST_CASE("every truncation is refused as a truncation") {
  std::vector<std::byte> file = threeSteps(2).bytes();
  for (size_t size = 0; size < file.size(); ++size) {
    // An exact copy, so that a sanitizer sees a read past the end.
    std::vector<std::byte> cut(file.begin(), file.begin() + long(size));
    ArtifactView view;
    Status s = parseArtifact(cut, WeightCheck::Verify, view);
    if (s.ok() || !contains(s.message(), "truncated"))
      FAIL("cut to " << size << " bytes: " << s.message());
  }
  CHECK(contains(refusal(Bytes(file).first(1000), ErrorCode::BadArtifact),
                 "truncated: it has 1000 bytes and should have"));
}

TEST_CASE("a refusal says what is wrong") {
  std::vector<std::byte> file = threeSteps(2).bytes();
  auto flipped = [&](size_t at) {
    std::vector<std::byte> copy = file;
    copy[at] ^= std::byte(1);
    return copy;
  };
  auto sectionStart = [&](size_t i) { return size_t(section(file, i).data() - file.data()); };

  CHECK(contains(refusal(flipped(0), ErrorCode::BadArtifact), "not a burin artifact"));
  std::vector<std::byte> version = file;
  poke(version, 8, kArtifactVersion + 40);
  std::string message = refusal(version, ErrorCode::BadArtifact);
  CHECK(contains(message, "format version " + std::to_string(kArtifactVersion + 40) + ", this runtime reads version " +
                              std::to_string(kArtifactVersion)));
  CHECK(contains(message, "compile it again"));
  CHECK(contains(refusal(flipped(kHeaderBytes), ErrorCode::BadArtifact), "header"));
  CHECK(contains(refusal(flipped(sectionStart(0)), ErrorCode::BadArtifact), "plan (META)"));
  CHECK(contains(refusal(flipped(sectionStart(1) + 5000), ErrorCode::BadArtifact), "code for x86-64"));
  CHECK(contains(refusal(flipped(sectionStart(2)), ErrorCode::BadArtifact), "weights"));
  std::vector<std::byte> longer = file;
  longer.push_back(std::byte(0));
  CHECK(contains(refusal(longer, ErrorCode::BadArtifact), "1 bytes after its end"));
  std::string noCode = refusal(threeSteps(2).bytes({"x86-64-v9", "riscv64"}), ErrorCode::Unsupported);
  CHECK(contains(noCode, "it has x86-64-v9, riscv64, this is "));

  Program::Ptr program;
  Status s = Program::loadFile("nothing here.plate", {}, program);
  REQUIRE(s.code() == ErrorCode::Io);
  CHECK(contains(s.message(), "nothing here.plate"));
  CHECK_FALSE(Program::loadFile(".", {}, program).ok());
}

TEST_CASE("weights may be trusted without reading them") {
  std::vector<std::byte> file = threeSteps(2).bytes();
  file.back() ^= std::byte(1);
  Program::Ptr program;
  CHECK_FALSE(Program::loadMemory(file, nullptr, {WeightCheck::Verify}, program).ok());
  requireOk(Program::loadMemory(file, nullptr, {WeightCheck::Trust}, program));
}

TEST_CASE("the best code that the processor runs is chosen") {
  Program::Ptr program;
  std::vector<std::byte> file = threeSteps(2).bytes({"x86-64", "x86-64-v2", "x86-64-v9"});
  requireOk(Program::loadMemory(file, nullptr, {}, program));
  CHECK(program->target() == "x86-64-v2");
}

TEST_CASE("every flipped bit is refused") {
  std::vector<std::byte> file = threeSteps(2).bytes();
  for (size_t at = 0; at < file.size(); ++at) {
    int bit = int(at % 8);
    file[at] ^= std::byte(1 << bit);
    ArtifactView view;
    if (parseArtifact(file, WeightCheck::Verify, view).ok())
      FAIL("byte " << at << " bit " << bit << " was accepted");
    file[at] ^= std::byte(1 << bit);
  }
  ArtifactView view;
  requireOk(parseArtifact(file, WeightCheck::Verify, view));
}

/// Changes the plan of a model randomly, again and again: each one is refused, or can be bound to these input shapes.
static void changePlan(const std::vector<std::byte> &original, const std::vector<std::vector<int64_t>> &shapes) {
  size_t meta = size_t(section(original, 0).data() - original.data()), metaBytes = section(original, 0).size();
  std::mt19937 random(7);
  int refused = 0, accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> file = original;
    for (uint32_t changes = 1 + random() % 3; changes--;) {
      static constexpr uint8_t interesting[] = {0, 1, 0x7f, 0x80, 0xff};
      file[meta + random() % metaBytes] = std::byte(random() % 2 ? interesting[random() % 5] : random());
    }
    if (random() % 16 == 0) // a shorter plan as well
      poke(file, kHeaderBytes + 16, uint64_t(random() % metaBytes));
    reseal(file);
    Program::Ptr program;
    if (Status s = Program::loadMemory(file, nullptr, {}, program); !s.ok()) {
      ++refused;
      continue;
    }
    ++accepted;
    std::unique_ptr<Session> session;
    requireOk(Session::create(program, {.threads = 1}, session));
    std::vector<TensorView> inputs;
    for (const std::vector<int64_t> &shape : shapes)
      inputs.push_back({nullptr, shape.data(), uint32_t(shape.size()), f32});
    if (session->bind(inputs).ok())
      REQUIRE(session->outputShape(0).size() <= 32);
  }
  CHECK(refused > 1000);
  CHECK(accepted > 1000); // changes of names, locations and sizes
}

TEST_CASE("a changed plan with right checksums is refused or can be bound") {
  changePlan(threeSteps(3).bytes(), {{2, 3}});
  changePlan(loopOverRows(3).bytes(), {{2, 3}});
  changePlan(recurrence(3, true).bytes(), {{4, 3}, {2, 3}});
}

static std::string problemOf(Model m, void (*change)(Artifact &)) {
  change(m.a);
  ArtifactView view;
  Status s = parseArtifact(m.bytes(), WeightCheck::Verify, view);
  REQUIRE(s.code() == ErrorCode::BadArtifact);
  return s.message();
}

TEST_CASE("a check of sizes that are not there is refused") {
  auto problem = [](void (*change)(Artifact &)) { return problemOf(threeSteps(3), change); };
  CHECK(contains(problem([](Artifact &a) { a.plans[0].checks.push_back({0, 999, 0}); }), "check 0: no expression 999"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].checks.push_back({0, 0, 999}); }), "check 0: no location 999"));
}

TEST_CASE("a loop that reaches outside its plan is refused") {
  auto problem = [](void (*change)(Artifact &)) { return problemOf(loopOverRows(3), change); };
  CHECK(contains(problem([](Artifact &a) { a.plans[0].loops[0].lastStep = 3; }), "loop 0: steps outside the plan"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].loops[0].iterations = 999; }), "loop 0: no expression 999"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].loops.push_back(a.plans[0].loops[0]); }),
                 "loop 1: does not follow"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].loops[0].lastStep = 1; }), "buffer 1: one per worker, but not"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].loops[0].firstStep = 1; }), "buffer 0: one per worker, but not"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].buffers[0].perWorker = 2; }), "buffer 0"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].parts[0].begin = 999; }), "part 0: no expression 999"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].parts[0].stride = 999; }), "part 0: no expression 999"));
  CHECK(contains(problemOf(recurrence(3, false), [](Artifact &a) { a.plans[0].loops[0].sequential = 2; }),
                 "loop 0: no kind 2"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].loops[0].sequential = 1; }), "buffer 0: one per worker, but"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].parts[0].whole.index = 1; }), "part 0: operand of kind 0"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].parts[0].whole = {Slot::Kind::Part, 1}; }),
                 "part 0: is a part of a part"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].parts[0].whole = {Slot::Kind::Buffer, 0}; }),
                 "is used outside a loop"));
  CHECK(contains(problem([](Artifact &a) {
                   a.plans[0].buffers.push_back({a.plans[0].buffers[0].bytes, 1, 2, 0});
                   a.plans[0].parts[0].whole = {Slot::Kind::Buffer, 2};
                 }),
                 "buffer 2 is not live"));
  CHECK(contains(problem([](Artifact &a) {
                   a.plans[0].loops.clear();
                   for (ArenaBuffer &b : a.plans[0].buffers)
                     b.perWorker = 0;
                 }),
                 "part 0 is used outside a loop"));
}

TEST_CASE("a plan that reaches outside its tables is refused") {
  auto problem = [](void (*change)(Artifact &)) { return problemOf(threeSteps(3), change); };
  CHECK(contains(problem([](Artifact &a) { a.plans[0].steps[1].kernel = 3; }), "step 1: no kernel 3"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].steps[0].operands[0].index = 1; }), "step 0: operand"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].steps[0].operands[0].kind = Slot::Kind(5); }),
                 "step 0: operand of kind 5"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].steps[1].deps = {1}; }), "step 1: depends on step 1"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].steps[2].sizes = {999}; }), "step 2: no expression 999"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].steps[2].operands[0].index = 0; }), "buffer 0 is not live"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].buffers[0].lastStep = 3; }), "buffer 0: live range"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].buffers[0].firstStep = 2; }), "buffer 0: live range"));
  CHECK(contains(problem([](Artifact &a) { a.constants[1].offset += 64; }), "constant 1: outside the weights"));
  CHECK(contains(problem([](Artifact &a) { a.constants[0].offset = 4; }), "constant 0"));
  CHECK(contains(problem([](Artifact &a) { a.constants[0].shape = {INT64_MAX, 4}; }), "constant 0: impossible shape"));
  CHECK(contains(problem([](Artifact &a) { a.constants[0].shape = {100}; }), "constant 0: its shape is larger"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].symbols[0].axis = 1; }),
                 "symbol 0: axis 1 of input 0 has another size"));
  CHECK(
      contains(problem([](Artifact &a) { a.plans[0].symbols[0].input = 1; }), "symbol 0: read from axis 0 of input 1"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].symbols[0].max = -1; }), "symbol 0: empty range"));
  CHECK(
      contains(problem([](Artifact &a) { a.plans[0].inputs[0].dtype = DType(200); }), "input 0: no element type 200"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].outputs[0].dims = std::vector<ExprId>(33); }),
                 "output 0: rank 33"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].outputs[0].location = 99; }), "output 0: no location 99"));
  CHECK(contains(problem([](Artifact &a) { a.plans[0].exprs[1].program.push_back({Expr::Op::Add, 0}); }),
                 "expression 1"));
}

TEST_CASE("a kernel must be in the executable part of the image") {
  Model m = threeSteps(3);
  std::vector<std::byte> file = m.bytes();
  for (uint64_t entry : {uint64_t(0), uint64_t(1) << 40, ~uint64_t(0)}) {
    m.a.codes[0].entries[1] = entry;
    std::vector<std::vector<std::byte>> images = {kernelImage()};
    Program::Ptr program;
    std::vector<std::byte> changed = writeArtifact(m.a, images, std::as_bytes(std::span(m.weights)));
    Status s = Program::loadMemory(changed, nullptr, {}, program);
    REQUIRE(s.code() == ErrorCode::BadArtifact);
    CHECK(contains(s.message(), "kernel 1 (exponential) is not in its code"));
  }
}

TEST_CASE("crc32c is the one of the standard") {
  const char *check = "123456789"; // the check value of RFC 3720
  CHECK(crc32c(std::as_bytes(std::span(check, 9))) == 0xe3069283);
  std::vector<std::byte> zeros(32);
  CHECK(crc32c(zeros) == 0x8a9136aa);
  for (size_t bytes : {size_t(0), size_t(1003), (size_t(16) << 20) + 41}) { // the last one is checked by two threads
    std::vector<std::byte> data(bytes);
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = std::byte(i * 37 + i / 251);
    uint32_t parts[8]; // by definition: eight parts of whole words; the last includes the remainder
    size_t part = bytes / 64 * 8;
    for (size_t i = 0; i < 8; ++i)
      parts[i] = crc32c(Bytes(data).subspan(i * part, i == 7 ? bytes - 7 * part : part));
    CHECK(checksum(data) == crc32c(std::as_bytes(std::span(parts))));
  }
}

TEST_CASE("a pipe or device is written to, not replaced") {
  std::string path = "/tmp/burin-pipe-" + std::to_string(::getpid());
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  int reader = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
  const char bytes[] = "graph";
  CHECK(writeFile(path, std::as_bytes(std::span(bytes))).ok());
  char got[sizeof bytes] = {};
  CHECK(::read(reader, got, sizeof got) == ssize_t(sizeof bytes));
  CHECK(std::string(got) == bytes);
  struct stat status;
  CHECK((::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)));
  ::close(reader);
  ::unlink(path.c_str());
}
