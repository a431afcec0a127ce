// Runs artifacts in guarded memory, so that invalid accesses of kernels are detected.
#include "runtime/execute/session/Session.h"
#include "test/ops/Graph.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>

namespace burin::test {

using ir::RefTensor;

namespace {

void check(const rt::Status &status, const char *what) {
  if (!status.ok())
    throw std::runtime_error(std::string(what) + ": " + status.message());
}

/// A buffer that ends directly before an inaccessible page, or starts directly after one.
class GuardedBytes {
public:
  GuardedBytes(size_t bytes, bool guardEnd) : size(bytes) {
    constexpr size_t page = 4096;
    size_t inner = (bytes + page - 1) / page * page;
    mapped = inner + 2 * page;
    base = static_cast<char *>(mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base == MAP_FAILED || (inner && mprotect(base + page, inner, PROT_READ | PROT_WRITE) != 0))
      throw std::bad_alloc();
    begin = base + page + (guardEnd ? inner - bytes : 0);
    std::memset(base + page, 0xA5, inner);
  }
  GuardedBytes(GuardedBytes &&other) noexcept
      : size(other.size), mapped(other.mapped), base(std::exchange(other.base, nullptr)), begin(other.begin) {}
  GuardedBytes &operator=(GuardedBytes &&) = delete;
  ~GuardedBytes() {
    if (base)
      munmap(base, mapped);
  }
  char *data() const { return begin; }
  std::span<const char> bytes() const { return {begin, size}; }

private:
  size_t size, mapped;
  char *base, *begin;
};

/// Fills memory with signalling bytes (NaN as floats), so that reads of uninitialised memory show.
void *allocateGarbage(void *, size_t bytes, size_t align) {
  void *memory = std::aligned_alloc(align, std::max(align, (bytes + align - 1) / align * align));
  if (memory)
    std::memset(memory, 0xFF, bytes);
  return memory;
}

/// The same program with such high step costs that each task becomes a chunk of its own.
std::vector<std::byte> expensive(rt::Bytes file) {
  rt::ArtifactView view;
  check(rt::parseArtifact(file, rt::WeightCheck::Verify, view), "parsing");
  rt::Expr flops;
  flops.program.push_back({rt::Expr::Op::Const, int64_t(1) << 60});
  for (rt::Plan &plan : view.artifact.plans) {
    plan.exprs.push_back(flops);
    for (rt::Step &step : plan.steps)
      step.flops = rt::ExprId(plan.exprs.size() - 1);
  }
  std::vector<std::vector<std::byte>> images;
  for (rt::Bytes code : view.code)
    images.emplace_back(code.begin(), code.end());
  return rt::writeArtifact(view.artifact, images, view.weights);
}

std::unique_ptr<rt::Session> open(rt::Bytes file, int threads) {
  rt::Program::Ptr program;
  check(rt::Program::loadMemory(file, nullptr, {}, program), "loading");
  rt::SessionOptions options;
  options.threads = threads;
  options.allocator = {nullptr, allocateGarbage, [](void *, void *data, size_t) { std::free(data); }};
  std::unique_ptr<rt::Session> session;
  check(rt::Session::create(std::move(program), options, session), "opening");
  return session;
}

/// The bytes of all results.
std::vector<GuardedBytes> runOn(rt::Session &session, const Tensors &inputs, bool guardEnd) {
  std::vector<GuardedBytes> memory, results;
  std::vector<rt::TensorView> in, out;
  for (const RefTensor &t : inputs) {
    std::vector<char> bytes = t.toBytes();
    memory.emplace_back(bytes.size(), guardEnd);
    std::copy(bytes.begin(), bytes.end(), memory.back().data());
    in.push_back({memory.back().data(), t.shape.data(), uint32_t(t.shape.size()), t.dtype});
  }
  check(session.bind(in), "binding");
  const rt::Plan &plan = session.program().artifact().plans[0];
  for (uint32_t i = 0; i < plan.outputs.size(); ++i) {
    auto shape = session.outputShape(i);
    bool isKnown = std::ranges::count(shape, -1) == 0; // otherwise the session allocates the result
    results.emplace_back(isKnown ? session.outputBytes(i) : 0, guardEnd);
    out.push_back(
        {isKnown ? results.back().data() : nullptr, shape.data(), uint32_t(shape.size()), plan.outputs[i].dtype});
  }
  check(session.run(in, out), "running");
  std::vector<GuardedBytes> all;
  for (uint32_t i = 0; i < out.size(); ++i) {
    if (out[i].data == results[i].data()) {
      all.push_back(std::move(results[i]));
      continue;
    }
    all.emplace_back(session.outputBytes(i), guardEnd);
    std::copy_n(static_cast<const char *>(out[i].data), session.outputBytes(i), all.back().data());
  }
  return all;
}

/// Compares bit by bit, except for the sign and payload of NaNs.
bool isSame(const RefTensor &x, const RefTensor &y) {
  auto same = [](auto a, auto b) { return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0; };
  return std::visit(
      [&](const auto &elements) {
        return std::ranges::equal(elements, std::get<std::decay_t<decltype(elements)>>(y.data), same);
      },
      x.data);
}

} // namespace

struct Compiled::Sessions {
  std::unique_ptr<rt::Session> serial, parallel;
};

Compiled::Compiled(std::vector<std::byte> artifact) : sessions(std::make_unique<Sessions>()) {
  rt::Bytes file = std::as_bytes(std::span(artifact));
  sessions->serial = open(file, 1);
  sessions->parallel = open(expensive(file), 2);
}
Compiled::~Compiled() = default;

Tensors Compiled::run(const Tensors &inputs) {
  auto serial = runOn(*sessions->serial, inputs, /*guardEnd=*/true);
  auto parallel = runOn(*sessions->parallel, inputs, /*guardEnd=*/false);
  Tensors results;
  for (size_t i = 0; i < serial.size(); ++i) {
    const rt::Session &session = *sessions->serial;
    auto shape = session.outputShape(uint32_t(i));
    auto read = [&](const GuardedBytes &from) {
      return RefTensor::fromBytes(session.program().artifact().plans[0].outputs[i].dtype, {shape.begin(), shape.end()},
                                  from.bytes());
    };
    results.push_back(read(serial[i]));
    if (!isSame(results.back(), read(parallel[i])))
      throw std::runtime_error("result " + std::to_string(i) + " differs between one thread and two");
  }
  return results;
}

} // namespace burin::test
