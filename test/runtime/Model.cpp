#include "test/runtime/Model.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>

namespace burin::rt::test {

std::vector<std::byte> readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

const std::vector<std::byte> &kernelImage() {
  static const std::vector<std::byte> image = readBytes(BURIN_TEST_KERNELS);
  return image;
}

uint64_t symbolAddress(const std::vector<std::byte> &elf, const std::string &name) {
  auto *base = elf.data();
  Elf64_Ehdr header;
  std::memcpy(&header, base, sizeof header);
  auto section = [&](size_t i) {
    Elf64_Shdr s;
    std::memcpy(&s, base + header.e_shoff + i * sizeof s, sizeof s);
    return s;
  };
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_DYNSYM)
      continue;
    auto *strings = reinterpret_cast<const char *>(base + section(table.sh_link).sh_offset);
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, base + table.sh_offset + at, sizeof symbol);
      if (strings + symbol.st_name == name)
        return symbol.st_value;
    }
  }
  return 0;
}

Model::Model() {
  a.producer = "burin test";
  a.locations = {""};
  a.plans.resize(1);
  a.plans[0].name = "main";
}

ExprId Model::constant(int64_t value) {
  plan().exprs.push_back({{{Expr::Op::Const, value}}});
  return ExprId(plan().exprs.size() - 1);
}

ExprId Model::symbol(const std::string &name, uint32_t input, uint32_t axis, int64_t min, int64_t max) {
  Symbol s;
  s.name = name;
  s.min = min;
  s.max = max;
  s.input = input;
  s.axis = axis;
  plan().symbols.push_back(s);
  plan().exprs.push_back({{{Expr::Op::Symbol, int64_t(plan().symbols.size() - 1)}}});
  return ExprId(plan().exprs.size() - 1);
}

ExprId Model::computed(const std::string &name, Slot count, uint32_t step, ExprId limit) {
  Symbol s;
  s.name = name;
  s.kind = Symbol::Kind::Computed;
  s.count = count;
  s.step = step;
  s.limit = limit;
  s.location = location("model.cpp:" + std::to_string(step));
  plan().symbols.push_back(s);
  plan().exprs.push_back({{{Expr::Op::Symbol, int64_t(plan().symbols.size() - 1)}}});
  return ExprId(plan().exprs.size() - 1);
}

ExprId Model::op(Expr::Op op, ExprId left, ExprId right) {
  Expr e = plan().exprs[left];
  e.program.insert(e.program.end(), plan().exprs[right].program.begin(), plan().exprs[right].program.end());
  e.program.push_back({op, 0});
  plan().exprs.push_back(e);
  return ExprId(plan().exprs.size() - 1);
}

void Model::input(const std::string &name, std::vector<ExprId> dims, DType dtype) {
  plan().inputs.push_back({name, dtype, std::move(dims), 0});
}

void Model::output(const std::string &name, std::vector<ExprId> dims, DType dtype) {
  plan().outputs.push_back({name, dtype, std::move(dims), 0});
}

Slot Model::weight(const std::string &name, std::vector<float> values) {
  weights.resize((weights.size() + 15) / 16 * 16);
  a.constants.push_back({name, f32, {int64_t(values.size())}, weights.size() * 4, values.size() * 4});
  weights.insert(weights.end(), values.begin(), values.end());
  return {Slot::Kind::Constant, uint32_t(a.constants.size() - 1)};
}

Slot Model::buffer(ExprId bytes, uint32_t firstStep, uint32_t lastStep) {
  plan().buffers.push_back({bytes, firstStep, lastStep, 0});
  return {Slot::Kind::Buffer, uint32_t(plan().buffers.size() - 1)};
}

Slot Model::part(Slot whole, ExprId begin, ExprId stride) {
  plan().parts.push_back({whole, begin, stride});
  return {Slot::Kind::Part, uint32_t(plan().parts.size() - 1)};
}

uint32_t Model::kernel(const std::string &name) {
  for (size_t i = 0; i < a.kernels.size(); ++i)
    if (a.kernels[i].name == name)
      return uint32_t(i);
  a.kernels.push_back({name, 0, {}});
  return uint32_t(a.kernels.size() - 1);
}

Step &Model::step(const std::string &name, std::vector<Slot> operands, std::vector<ExprId> sizes, ExprId tasks) {
  ExprId zero = constant(0);
  Step s;
  s.kernel = kernel(name);
  s.operands = std::move(operands);
  s.sizes = std::move(sizes);
  s.tasks = tasks;
  s.scratchBytes = s.flops = s.bytes = zero;
  if (!plan().steps.empty())
    s.deps = {uint32_t(plan().steps.size() - 1)};
  plan().steps.push_back(s);
  return plan().steps.back();
}

uint32_t Model::function(const std::string &name) {
  current = a.plans.size();
  a.plans.emplace_back().name = name;
  plan().isPrivate = 1;
  return uint32_t(current);
}

ExprId Model::passed(const std::string &name) {
  Symbol s;
  s.name = name;
  s.kind = Symbol::Kind::Passed;
  plan().symbols.push_back(s);
  plan().exprs.push_back({{{Expr::Op::Symbol, int64_t(plan().symbols.size() - 1)}}});
  return ExprId(plan().exprs.size() - 1);
}

Step &Model::run(Step::Kind kind, std::vector<uint32_t> plans, std::vector<Slot> operands, std::vector<ExprId> sizes) {
  Step s;
  s.kind = kind;
  s.plans = std::move(plans);
  s.operands = std::move(operands);
  s.sizes = std::move(sizes);
  s.tasks = constant(1);
  s.scratchBytes = s.gpuScratchBytes = s.flops = s.bytes = constant(0);
  if (!plan().steps.empty())
    s.deps = {uint32_t(plan().steps.size() - 1)};
  plan().steps.push_back(s);
  return plan().steps.back();
}

uint32_t Model::location(const std::string &where) {
  a.locations.push_back(where);
  return uint32_t(a.locations.size() - 1);
}

std::vector<std::byte> Model::bytes(const std::vector<std::string> &targets) {
  a.codes.clear();
  std::vector<std::vector<std::byte>> images;
  for (const std::string &target : targets) {
    Code code;
    code.target = target;
    for (const Kernel &k : a.kernels)
      code.entries.push_back(symbolAddress(kernelImage(), k.name));
    a.codes.push_back(code);
    images.push_back(kernelImage());
  }
  return writeArtifact(a, images, std::as_bytes(std::span(weights)));
}

Program::Ptr Model::load() {
  Program::Ptr program;
  if (Status s = Program::loadMemory(bytes(), nullptr, {}, program); !s.ok()) {
    std::fprintf(stderr, "%s\n", s.message().c_str());
    std::abort();
  }
  return program;
}

Model threeSteps(int64_t n) {
  Model m;
  ExprId columns = m.constant(n);
  ExprId batch = m.symbol("batch", 0, 0);
  ExprId elements = m.op(Expr::Op::Mul, batch, columns);
  ExprId bytes = m.op(Expr::Op::Mul, elements, m.constant(4));
  m.input("x", {batch, columns});
  m.output("y", {batch, columns});
  std::vector<float> w, b(size_t(n), .5f);
  for (int64_t i = 0; i < n; ++i)
    w.push_back(float(i + 1));
  Slot weight = m.weight("w", w), bias = m.weight("b", b);
  Slot first = m.buffer(bytes, 0, 1), second = m.buffer(bytes, 1, 2);
  m.step("affine", {in(0), weight, bias, first}, {columns}, batch).location = m.location("model.cpp:7");
  m.step("exponential", {first, second}, {}, elements).location = m.location("model.cpp:8");
  Step &last = m.step("reversed", {second, out(0)}, {columns}, batch);
  last.location = m.location("model.cpp:9");
  last.scratchBytes = m.constant(n * 4);
  for (Step &step : m.plan().steps)
    step.flops = elements, step.bytes = bytes;
  return m;
}

Model loopOverRows(int64_t n) {
  Model m = threeSteps(n);
  ExprId one = m.constant(1), columns = m.constant(n), rowBytes = m.constant(n * 4);
  m.plan().loops.push_back({0, 2, m.plan().steps[0].tasks, 0});
  m.plan().steps[0].operands[0] = m.part(in(0), m.constant(0), rowBytes);
  m.plan().steps[2].operands[1] = m.part(out(0), m.constant(0), rowBytes);
  for (ArenaBuffer &buffer : m.plan().buffers) {
    buffer.bytes = rowBytes;
    buffer.perWorker = 1;
  }
  for (Step &step : m.plan().steps) {
    step.tasks = one;
    step.flops = columns;
    step.bytes = rowBytes;
  }
  m.plan().steps[1].tasks = columns;
  return m;
}

Model recurrence(int64_t n, bool reverse) {
  Model m;
  ExprId columns = m.constant(n), iterations = m.symbol("iterations", 1, 0), zero = m.constant(0), four = m.constant(4);
  ExprId row = m.constant(n * 4), back = m.constant(-n * 4), state = m.constant(4 * n * 4);
  ExprId last = m.op(Expr::Op::Mul, m.op(Expr::Op::Sub, iterations, m.constant(1)), row);
  m.input("first", {four, columns});
  m.input("w", {iterations, columns});
  m.output("h", {m.op(Expr::Op::Add, iterations, m.constant(1)), four, columns});
  auto all = [&](const char *name, float value) { return m.weight(name, std::vector<float>(size_t(n), value)); };
  m.step("affine", {in(0), all("ones", 1), all("none", 0), out(0)}, {columns}, four);
  Slot before = m.part(out(0), zero, state), after = m.part(out(0), state, state);
  Slot factor = reverse ? m.part(in(1), last, back) : m.part(in(1), zero, row);
  m.step("affine", {before, factor, all("half", .5f), after}, {columns}, four).flops = m.constant(1 << 30);
  m.plan().loops.push_back({1, 1, iterations, 1});
  return m;
}

Model positives() {
  Model m;
  ExprId n = m.symbol("n", 0, 0), one = m.constant(1), four = m.constant(4), eight = m.constant(8);
  auto floats = [&](ExprId count) { return m.op(Expr::Op::Mul, count, four); };
  m.input("x", {n});
  Slot first = m.buffer(floats(n), 0, 1), firstCount = m.buffer(eight, 0, 0);
  ExprId k = m.computed("k", firstCount, 1, n);
  Slot shifted = m.buffer(floats(k), 2, 3), second = m.buffer(floats(k), 3, 4), secondCount = m.buffer(eight, 3, 3);
  ExprId l = m.computed("m", secondCount, 4, k);
  m.output("y", {k});
  m.output("z", {l});
  Slot weight = m.weight("w", {1}), bias = m.weight("b", {-1});
  m.step("positive", {in(0), first, firstCount}, {n}, one);
  m.step("exponential", {first, out(0)}, {}, k);
  m.step("affine", {out(0), weight, bias, shifted}, {one}, k);
  m.step("positive", {shifted, second, secondCount}, {k}, one);
  m.step("exponential", {second, out(1)}, {}, l);
  return m;
}

uint32_t affineFunction(Model &m, const std::string &name, float factor, float term) {
  const size_t before = m.current;
  uint32_t index = m.function(name);
  ExprId n = m.passed("n"), one = m.constant(1);
  m.input("x", {n});
  m.output("y", {n});
  m.step("affine", {in(0), m.weight("factor", {factor}), m.weight("term", {term}), out(0)}, {one}, n);
  m.current = before;
  return index;
}

Model looping() {
  Model m;
  ExprId n = m.symbol("n", 0, 0), bytes = m.op(Expr::Op::Mul, n, m.constant(4));
  m.input("x", {n});
  m.output("y", {n});
  uint32_t condition = m.function("condition");
  ExprId passed = m.passed("n"), one = m.constant(1);
  m.input("x", {passed});
  m.output("goes on", {}, boolean);
  m.step("below", {in(0), m.weight("limit", {100}), out(0)}, {}, one);
  m.current = 0;
  uint32_t body = affineFunction(m, "body", 2, 1);
  Slot other = m.buffer(bytes, 0, 0);
  m.run(Step::Kind::While, {condition, body}, {in(0), out(0), other}, {n, n});
  return m;
}

std::vector<float> expectedThreeSteps(const std::vector<float> &x, int64_t n) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    size_t row = i / size_t(n), column = i % size_t(n);
    y[row * size_t(n) + size_t(n) - 1 - column] = std::exp(x[i] * float(column + 1) + .5f);
  }
  return y;
}

} // namespace burin::rt::test
