// Compares every elementwise op of the table, on every element type that it accepts, with the reference interpreter.
#include "codegen/scalar/Elementwise.h"
#include "ir/reference/Reference.h"
#include "test/math/Samples.h"

using namespace burin;
using codegen::Scalar;

namespace {

template <class T> std::span<const char> bytesOf(const std::vector<T> &x) {
  return {reinterpret_cast<const char *>(x.data()), x.size() * sizeof(T)};
}

bool takes(const ir::OpInfo &info, DType type) {
  switch (info.domain) {
  case ir::Domain::Any:
    return true;
  case ir::Domain::Numeric:
    return !isBool(type);
  case ir::Domain::Float:
    return isFloat(type);
  case ir::Domain::Integer:
    return !isFloat(type);
  case ir::Domain::Bool:
    return isBool(type);
  }
  return false;
}

/// Mantissa bits and the smallest exponent of a float type.
struct Format {
  int mantissa, lowest;
};
Format formatOf(DType type) {
  switch (type) {
  case f64:
    return {52, -1022};
  case f32:
    return {23, -126};
  case f16:
    return {10, -14};
  default:
    return {7, -126};
  }
}

double lastPlace(double x, DType type) {
  Format f = formatOf(type);
  return std::ldexp(1.0, (x == 0 ? f.lowest : std::max(std::ilogb(x), f.lowest)) - f.mantissa);
}

/// Returns the allowed distance of `got` from `exact`, in last places of the result, and of the operand for ops that
/// cancel or amplify.
double tolerance(llvm::StringRef op, DType type, double exact, double x) {
  bool narrow = byteWidth(type) == 2; // computed in f32, so only the final rounding shows
  double ulps = narrow ? 1 : 4, computed = lastPlace(exact, type) * ulps;
  DType compute = narrow ? f32 : type;
  if (op.starts_with("gelu")) // x * (1 + erf(..)): the error relative to 1, as the sum may cancel
    return computed + 4 * std::fabs(x) * lastPlace(1, compute);
  if (op == "silu")
    return computed + std::fabs(x) * lastPlace(0, compute);
  return computed;
}

bool agree(llvm::StringRef op, DType operand, DType result, double got, double exact, double x) {
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) && std::isnan(got);
  if (!isFloat(result) || got == exact)
    return got == exact;
  double largest = ir::roundTo(result, 1e300) == INFINITY
                       ? std::ldexp(2 - lastPlace(1, result), result == f16 ? 15 : 127)
                       : std::numeric_limits<double>::max();
  // Infinity counts as the neighbour of the largest number.
  double near = std::clamp(got, -largest, largest), expected = std::clamp(exact, -largest, largest);
  return std::fabs(near - expected) <= tolerance(op, operand, expected, x);
}

struct Case {
  std::string name;
  mlir::Operation *op;
};

template <class T> struct Table {
  static constexpr DType type = test::dtypeFor<T>();
  test::Jit jit;
  mlir::Block block;
  std::vector<Case> cases;
  decltype(test::pairs<T>()) pairs = test::pairs<T>();
  test::Array<bool> condition;

  void add(const ir::OpInfo &info, std::vector<ir::Attr> attrs, const std::string &suffix = "") {
    auto &context = jit.getContext();
    mlir::OpBuilder b(&context);
    b.setInsertionPointToEnd(&block);
    auto length = static_cast<int64_t>(pairs.first.size());
    std::vector<mlir::Value> operands;
    std::vector<DType> types;
    for (const auto &operand : info.operands) {
      types.push_back(llvm::StringRef(operand.name) == "condition" ? boolean : type);
      operands.push_back(block.addArgument(ir::tensorType(&context, {types.back(), {Dim(length)}}), b.getUnknownLoc()));
    }
    mlir::Operation *op = ir::createOp(b, b.getUnknownLoc(), info, operands, std::move(attrs));
    REQUIRE(op);
    cases.push_back({info.name + suffix, op});
    DType result = ir::dtypeOf(op->getResult(0));
    jit.add(cases.back().name, types, 16, [&](llvm::ArrayRef<Scalar> x) {
      std::vector<mlir::Value> lanes;
      for (const Scalar &operand : x)
        lanes.push_back(operand.value());
      return x[0].with(codegen::emitElementwise(x[0].getBuilder(), x[0].getLoc(), op, lanes), result);
    });
  }

  template <class R> void compare(const Case &c) {
    auto length = static_cast<int64_t>(pairs.first.size());
    auto tensor = [&](auto &array, DType t) { return ir::RefTensor::fromBytes(t, {length}, bytesOf(array)); };
    std::vector<ir::RefTensor> inputs;
    test::Array<R> got;
    auto kernel = jit[c.name];
    auto &[x, y] = pairs;
    switch (c.op->getNumOperands()) {
    case 1:
      got = test::run<R>(kernel, x);
      inputs = {tensor(x, type)};
      break;
    case 2:
      got = test::run<R>(kernel, x, y);
      inputs = {tensor(x, type), tensor(y, type)};
      break;
    default:
      if (ir::dtypeOf(c.op->getOperand(0)) == boolean && type != boolean) {
        got = test::run<R>(kernel, condition, x, y);
        inputs = {tensor(condition, boolean), tensor(x, type), tensor(y, type)};
      } else {
        got = test::run<R>(kernel, x, y, x);
        inputs = {tensor(x, type), tensor(y, type), tensor(x, type)};
      }
    }
    auto exact = ir::evaluate(c.op, inputs);
    REQUIRE(mlir::succeeded(exact));
    auto measured = tensor(got, test::dtypeFor<R>());
    for (int64_t i = 0; i < length; ++i)
      if (!agree(c.name, type, test::dtypeFor<R>(), measured[i], (*exact)[0][i], inputs.back()[i])) {
        INFO(c.name << " on " << name(type) << " " << inputs.front()[i] << ", " << inputs.back()[i]);
        REQUIRE(measured[i] == (*exact)[0][i]);
      }
    CHECK(got.size() == x.size());
  }

  void run() {
    ir::loadDialects(jit.getContext());
    condition.resize(pairs.first.size());
    for (size_t i = 0; i < condition.size(); ++i)
      condition[i] = i % 3 == 0;
    for (const ir::OpInfo &info : ir::opTable()) {
      llvm::StringRef name = info.name; // check has a condition instead of a value
      if (!info.elementwise || name == "cast" || name == "check" || !takes(info, type))
        continue;
      std::vector<ir::Attr> attrs;
      for (const auto &attr : info.attrs)
        attrs.push_back(attr.fallback);
      add(info, attrs);
      if (llvm::StringRef(info.name) == "gelu")
        add(info, {ir::Attr(std::string("tanh"))}, "_tanh");
    }
    jit.compile();
    for (const Case &c : cases)
      if (ir::dtypeOf(c.op->getResult(0)) == boolean)
        compare<bool>(c);
      else
        compare<T>(c);
  }
};

} // namespace

TEST_CASE("elementwise ops on f32") { Table<float>().run(); }
TEST_CASE("elementwise ops on f64") { Table<double>().run(); }
TEST_CASE("elementwise ops on f16") { Table<_Float16>().run(); }
TEST_CASE("elementwise ops on bf16") { Table<test::Bf16>().run(); }
TEST_CASE("elementwise ops on i8") { Table<int8_t>().run(); }
TEST_CASE("elementwise ops on u8") { Table<uint8_t>().run(); }
TEST_CASE("elementwise ops on i32") { Table<int32_t>().run(); }
TEST_CASE("elementwise ops on i64") { Table<int64_t>().run(); }
TEST_CASE("elementwise ops on bool") { Table<bool>().run(); }
