#include "test/docs/FromPytorch.h"
#include <sstream>

namespace {

struct Stored {
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<double> elements;
};

Stored parse(const char *text) {
  std::istringstream in(text);
  Stored stored;
  in >> stored.dtype;
  std::string word;
  while (in >> word && word != ":")
    stored.shape.push_back(std::stoll(word));
  while (in >> word)
    stored.elements.push_back(std::stod(word));
  return stored;
}

Tensor tensorOf(const Input &input) {
  Stored stored = parse(input.value);
  return from_vector(stored.elements, Shape(stored.shape.begin(), stored.shape.end())).to(input.spec.dtype);
}

void compare(const Tensor &result, const Stored &expected, bool elements) {
  CHECK(std::string(name(result.dtype())) == expected.dtype);
  INFO("shape " << result.shape());
  REQUIRE(result.shape() == expected.shape);
  if (!elements)
    return;
  const std::vector<double> values = result.to_vector<double>();
  REQUIRE(values.size() == expected.elements.size());
  const double tolerance = expected.dtype == "f16" || expected.dtype == "bf16" ? 1e-2 : 1e-5;
  for (size_t i = 0; i < values.size(); ++i) {
    const double wanted = expected.elements[i];
    if (std::isnan(wanted) ? std::isnan(values[i])
                           : values[i] == wanted || std::abs(values[i] - wanted) <= tolerance * (1 + std::abs(wanted)))
      continue;
    FAIL_CHECK("element " << i << " is " << values[i] << ", PyTorch's " << wanted);
    break;
  }
}

std::vector<Tensor> compute(const Row &row) {
  std::vector<Tensor> values;
  std::vector<TensorSpec> specs;
  for (const Input &input : inputs) {
    values.push_back(tensorOf(input));
    specs.push_back(input.spec);
  }
  return row.kind == Kind::Traced ? trace(row.compute, specs).run(values) : row.compute(values);
}

} // namespace

void checkRows(const std::vector<Row> &rows) {
  for (const Row &row : rows) {
    INFO("docs/from-pytorch.md:" << row.line << ": " << row.expression);
    std::vector<Tensor> results;
    try {
      results = compute(row);
    } catch (const Error &error) {
      FAIL_CHECK(error.what());
      continue;
    }
    CHECK(results.size() == row.results.size());
    for (size_t i = 0; i < std::min(results.size(), row.results.size()); ++i)
      compare(results[i], parse(row.results[i]), row.kind != Kind::Shapes);
  }
}
