// Tests the batching rule of every op on the rows of the op table, against the reference interpreter on one example at
// a time.
#include "test/ops/Row.h"
#include "frontend/batching/Rules.h"
#include "frontend/trace/GraphData.h"
#include "ir/reference/Reference.h"
#include <burin/burin.h>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <set>

using namespace burin;
using burin::test::Row;
using ir::RefTensor;

namespace {

using RefTensors = std::vector<RefTensor>;
using Flags = std::vector<bool>;

/// A call of an op on operands of fixed sizes.
struct Call {
  const ir::OpInfo &info;
  test::Example example;
  std::vector<ir::Attr> attrs;

  Call(const ir::OpInfo &info, test::Example given) : info(info), example(std::move(given)) {
    std::map<std::string, int64_t> sizes;
    if (!example.sizes.empty())
      sizes = example.sizes[0];
    auto fixed = [&](Shape &shape) {
      for (Dim &d : shape)
        d = d.substitute([&](std::string_view symbol) { return Dim(sizes.at(std::string(symbol))); });
    };
    for (test::Operand &operand : example.operands)
      if (operand.spec)
        fixed(operand.spec->shape);
    for (const ir::AttrInfo &attr : info.attrs) {
      auto own = example.attrs.find(attr.name);
      attrs.push_back(own == example.attrs.end() ? attr.fallback : own->second);
      if (auto *shape = std::get_if<Shape>(&attrs.back()))
        fixed(*shape);
    }
  }

  size_t present() const {
    return size_t(std::ranges::count_if(example.operands, [](const test::Operand &x) { return x.spec.has_value(); }));
  }
  /// The present operands, with a leading dimension `examples` for those that are batched.
  std::vector<TensorSpec> specs(const Flags &isBatched, const Dim &examples) const {
    std::vector<TensorSpec> list;
    for (const test::Operand &operand : example.operands)
      if (operand.spec) {
        TensorSpec spec = *operand.spec;
        if (isBatched[list.size()])
          spec.shape.insert(spec.shape.begin(), examples);
        list.push_back(spec);
      }
    return list;
  }
  RefTensors draw(const Flags &isBatched, int64_t examples, test::Random &random) const {
    RefTensors list;
    for (const test::Operand &operand : example.operands) {
      if (!operand.spec)
        continue;
      std::vector<int64_t> shape;
      const TensorSpec spec = specs(isBatched, examples)[list.size()];
      for (const Dim &d : spec.shape)
        shape.push_back(d.value());
      list.push_back(test::randomTensor(operand.spec->dtype, shape, operand.draw, test::Mood::Plain, random));
      if (operand.isIndex)
        bringIntoRange(list.back());
    }
    return list;
  }
  std::vector<Tensor> apply(std::span<const Tensor> given) const;
  RefTensors interpret(const RefTensors &inputs) const {
    test::Graph graph;
    std::vector<test::Graph::Value> operands;
    for (const test::Operand &operand : example.operands)
      operands.push_back(operand.spec ? graph.input(*operand.spec) : test::Graph::none);
    test::Attrs named;
    for (size_t i = 0; i < attrs.size(); ++i)
      named[info.attrs[i].name] = attrs[i];
    for (test::Graph::Value value : graph.apply(info.name, operands, named))
      graph.output(value);
    return graph.interpret(inputs);
  }

private:
  void bringIntoRange(RefTensor &indices) const {
    auto axis = example.attrs.find("axis");
    int64_t at = axis == example.attrs.end() ? 0 : std::get<int64_t>(axis->second);
    const Shape &shape = example.operands[0].spec->shape;
    int64_t size = shape[size_t(at < 0 ? at + int64_t(shape.size()) : at)].value();
    for (int64_t &index : indices.ints())
      index = size ? index % size : 0;
  }
};

std::vector<Tensor> Call::apply(std::span<const Tensor> given) const {
  std::vector<Tensor> operands;
  size_t next = 0;
  for (const test::Operand &operand : example.operands)
    operands.push_back(operand.spec ? given[next++] : Tensor());
  return batching::callOp(info, operands, attrs);
}

/// Returns example `at` of a tensor whose leading dimension is the batch.
RefTensor exampleOf(const RefTensor &x, int64_t at) {
  RefTensor one = RefTensor::zeros(x.dtype, {x.shape.begin() + 1, x.shape.end()});
  for (int64_t i = 0; i < one.size(); ++i)
    if (isFloat(x.dtype))
      one.reals()[size_t(i)] = x.reals()[size_t(at * one.size() + i)];
    else
      one.ints()[size_t(i)] = x.ints()[size_t(at * one.size() + i)];
  return one;
}

RefTensors absolute(RefTensors tensors) {
  for (RefTensor &t : tensors)
    if (isFloat(t.dtype))
      for (double &x : t.reals())
        x = std::fabs(x);
  return tensors;
}

/// A graph that applies vmap to all examples of a row.
class Trial {
public:
  Trial(const Row &row, DType type, const std::function<bool(size_t)> &differs) : row(row) {
    for (test::Example &example : row.examples(row, type)) {
      Call call(*ir::findOp(row.op), std::move(example));
      Flags flags;
      for (size_t i = 0; i < call.present(); ++i)
        flags.push_back(differs(i));
      if (std::ranges::find(flags, true) != flags.end()) {
        calls.push_back(std::move(call));
        isBatched.push_back(flags);
      }
    }
  }
  bool isEmpty() const { return calls.empty(); }

  burin::Graph graph(const Dim &examples) const {
    std::vector<TensorSpec> specs;
    for (size_t i = 0; i < calls.size(); ++i)
      for (const TensorSpec &spec : calls[i].specs(isBatched[i], examples))
        specs.push_back(spec);
    auto all = [&](const std::vector<Tensor> &inputs) {
      std::vector<Tensor> results;
      size_t next = 0;
      for (size_t i = 0; i < calls.size(); ++i) {
        std::vector<BatchAxes::Axis> axes;
        for (bool flag : isBatched[i])
          axes.push_back(flag ? BatchAxes::Axis(0) : BatchAxes::Axis(None));
        auto one = [&](const std::vector<Tensor> &given) { return calls[i].apply(given); };
        std::vector<Tensor> given(inputs.begin() + ptrdiff_t(next), inputs.begin() + ptrdiff_t(next + axes.size()));
        next += axes.size();
        for (Tensor &result : burin::vmap(one, BatchAxes(axes))(given))
          results.push_back(result);
      }
      return results;
    };
    return trace(all, specs);
  }

  using Runner = std::function<RefTensors(const RefTensors &)>;
  /// Compares the results of `run` on the graph with those of a call per example.
  void compare(const Runner &run, int64_t examples, const std::string &how) const {
    test::Random random(examples + 17);
    RefTensors inputs;
    for (size_t i = 0; i < calls.size(); ++i)
      for (RefTensor &x : calls[i].draw(isBatched[i], examples, random))
        inputs.push_back(std::move(x));
    const RefTensors results = run(inputs);
    size_t nextInput = 0, nextResult = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      INFO(row.op << ", example " << i << ", " << how << ", " << examples << " examples");
      RefTensors given(inputs.begin() + ptrdiff_t(nextInput),
                       inputs.begin() + ptrdiff_t(nextInput + isBatched[i].size()));
      nextInput += given.size();
      size_t count = 1;
      for (int64_t at = 0; at < examples; ++at) {
        RefTensors one;
        for (size_t k = 0; k < given.size(); ++k)
          one.push_back(isBatched[i][k] ? exampleOf(given[k], at) : given[k]);
        const RefTensors wanted = calls[i].interpret(one);
        const RefTensors scale = row.isLinear() ? calls[i].interpret(absolute(one)) : RefTensors();
        count = wanted.size();
        for (size_t r = 0; r < count; ++r) {
          REQUIRE(results[nextResult + r].shape.front() == examples);
          const std::string different = test::difference(exampleOf(results[nextResult + r], at), wanted[r],
                                                         row.tolerance, scale.empty() ? nullptr : &scale[r]);
          INFO(different);
          CHECK(different.empty());
        }
      }
      if (examples == 0)
        count = calls[i].interpret(calls[i].draw(Flags(given.size()), 1, random)).size();
      for (size_t r = 0; r < count; ++r)
        CHECK(results[nextResult + r].shape.front() == examples);
      nextResult += count;
    }
  }

private:
  const Row &row;
  std::vector<Call> calls;
  std::vector<Flags> isBatched; // by call
};

RefTensors interpret(const burin::Graph &graph, const RefTensors &inputs) {
  auto results = ir::interpret(*graph.shared()->module, inputs);
  if (mlir::failed(results))
    throw std::runtime_error(graph.shared()->takeDiagnostics() + "\n" + graph.str());
  for (RefTensor &x : *results) { // rounds the results to their element types
    const std::vector<char> bytes = x.toBytes();
    x = RefTensor::fromBytes(x.dtype, x.shape, bytes);
  }
  return *results;
}

RefTensors runCompiled(const burin::Graph &graph, const RefTensors &inputs) {
  std::vector<Tensor> given;
  for (const RefTensor &x : inputs) {
    std::vector<char> bytes = x.toBytes();
    given.push_back(from_bytes(bytes.data(), {x.dtype, Shape(x.shape.begin(), x.shape.end())}));
  }
  RefTensors results;
  for (const Tensor &x : graph.run(given)) {
    const TensorSpec spec = x.spec();
    std::vector<int64_t> shape;
    for (const Dim &d : spec.shape)
      shape.push_back(d.value());
    Tensor wide = isFloat(spec.dtype) ? x.to(f64) : x.to(i64);
    RefTensor result = RefTensor::zeros(spec.dtype, shape);
    if (isFloat(spec.dtype))
      result.reals() = wide.to_vector<double>();
    else
      result.ints() = wide.to_vector<int64_t>();
    results.push_back(std::move(result));
  }
  return results;
}

bool isRefused(const Row &row) { return ir::findOp(row.op)->newSize() != nullptr; }

const std::vector<std::pair<std::string, std::function<bool(size_t)>>> kSubsets{
    {"all operands", [](size_t) { return true; }},
    {"the first operand", [](size_t i) { return i == 0; }},
    {"the second operand", [](size_t i) { return i == 1; }},
    {"all but the first operand", [](size_t i) { return i > 0; }}};

} // namespace

TEST_CASE("the batching rule of each op gives what single calls give") {
  for (const Row *row : test::allRows()) {
    if (isRefused(*row))
      continue;
    std::set<DType> types{row->types.front(), row->types.back()};
    for (DType type : types)
      for (const auto &[how, differs] : kSubsets) {
        const bool isFirst = &how == &kSubsets[0].first, isLong = std::getenv("BURIN_LONG_TESTS") != nullptr;
        if (!isFirst && !isLong && type != row->types.front())
          continue;
        Trial trial(*row, type, differs);
        if (trial.isEmpty())
          continue;
        try {
          burin::Graph symbolic = trial.graph(Dim("examples"));
          for (int64_t examples : {3, 1, 0})
            if (isFirst || isLong || examples == 3)
              trial.compare([&](const RefTensors &inputs) { return interpret(symbolic, inputs); }, examples,
                            how + ", symbolic");
          for (int64_t examples : {3, 1, 0}) {
            if (!isLong && type != row->types.front())
              break;
            if (!isFirst && !isLong && examples != 3)
              continue;
            burin::Graph known = trial.graph(examples);
            trial.compare([&](const RefTensors &inputs) { return interpret(known, inputs); }, examples,
                          how + ", known");
          }
        } catch (const std::exception &error) {
          FAIL_CHECK(row->op << ", " << how << ": " << error.what());
        }
      }
  }
}

TEST_CASE("compiled batching rules are within the bounds of the ops") {
  for (const Row *row : test::allRows()) {
    if (isRefused(*row))
      continue;
    Trial trial(*row, row->types.front(), kSubsets[0].second);
    if (trial.isEmpty())
      continue;
    burin::Graph graph = trial.graph(3);
    trial.compare([&](const RefTensors &inputs) { return runCompiled(graph, inputs); }, 3, "compiled");
  }
}

TEST_CASE("every op that can be in a graph has a batching rule") {
  for (const ir::OpInfo &info : ir::opTable())
    if (!info.internal && !info.operands.empty()) {
      INFO(info.name);
      CHECK(batching::ruleOf(info));
    }
}
