// Row gradients of embeddings compared with PyTorch's sparse gradients; see make_rows.py.
#include "test/frontend/Check.h"
#include "test/training/Cases.h"

using namespace burin::test;
using namespace burin::optim;

namespace {

const std::map<std::string, Tensors> &cases() {
  static const auto all = loadCases("rows.json");
  return all;
}
Tensor common(const std::string &name, int step) { return cases().at("common").at(name + "." + std::to_string(step)); }

nn::Embedding tableOf(bool sparse, std::optional<int64_t> padding = std::nullopt) {
  nn::Embedding layer(7, 3, {.padding_idx = padding, .sparse = sparse});
  layer.weight = Parameter(cases().at("common").at("w"));
  return layer;
}

Tensor lossOf(const nn::Embedding &layer, const Tensor &indices, const Tensor &weights) {
  return (pow(layer(indices), 2) * weights).sum();
}

using Make = std::function<Optimizer(std::vector<Parameter>)>;
const std::map<std::string, Make> &rules() {
  using P = std::vector<Parameter>;
  static const std::map<std::string, Make> all{
      {"SGD", [](P p) { return SGD(p, {.lr = 0.02}); }},
      {"SGD maximize", [](P p) { return SGD(p, {.lr = 0.02, .maximize = true}); }},
      {"Adagrad", [](P p) { return Adagrad(p, {.lr = 0.1, .lr_decay = 0.1, .initial_accumulator_value = 0.2}); }},
      {"SparseAdam", [](P p) { return SparseAdam(p, {.lr = 0.05, .betas = {0.8, 0.9}}); }},
      {"padding", [](P p) { return SparseAdam(p, {.lr = 0.05}); }}};
  return all;
}

} // namespace

TEST_CASE("Optimisers by rows do what PyTorch's do, eagerly and in compiled steps") {
  for (const auto &[name, make] : rules())
    for (bool isJitted : {false, true}) {
      INFO(name << (isJitted ? ", jitted" : ", eager"));
      nn::Embedding layer = tableOf(true, name == "padding" ? std::optional<int64_t>(3) : std::nullopt);
      Optimizer optimizer = make({layer.weight});
      auto step = [&](const Tensor &indices, const Tensor &weights) {
        Tensor loss = lossOf(layer, indices, weights);
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        return loss;
      };
      auto compiled = jit(step);
      for (int s = 0; s < 5; ++s) {
        Tensor before = layer.weight;
        isJitted ? compiled(common("i", s), common("g", s)) : step(common("i", s), common("g", s));
        if (s == 0 && !isJitted)
          checkClose(layer.weight->grad(), cases().at(name).at("grad"), 1e-11, name);
        checkClose(layer.weight, cases().at(name).at("after." + std::to_string(s)), 1e-11, name);
        if (s == 0) // an old value that is still referenced has not changed
          checkClose(before, cases().at("common").at("w"), 0, name);
      }
    }
}

TEST_CASE("Gradients by rows of one lookup give the bits of whole ones, of several nearly") {
  for (const char *name : {"SGD", "Adagrad"})
    for (bool isSecond : {false, true}) {
      nn::Embedding byRows = tableOf(true), whole = tableOf(false);
      Optimizer one = rules().at(name)({byRows.weight}), two = rules().at(name)({whole.weight});
      for (int s = 0; s < 5; ++s) {
        for (auto &[layer, optimizer] : {std::pair{&byRows, &one}, {&whole, &two}}) {
          optimizer->zero_grad();
          lossOf(*layer, common("i", s) - 7, common("g", s)).backward(); // negative indices
          if (isSecond)
            lossOf(*layer, common("i", 0), common("g", 0)).backward();
          optimizer->step();
        }
        CHECK((isSecond ? allclose(byRows.weight, whole.weight, 1e-12, 1e-12) : equal(byRows.weight, whole.weight)));
      }
    }
}

TEST_CASE("A table that is used otherwise has a whole gradient") {
  nn::Embedding byRows = tableOf(true), whole = tableOf(false);
  Optimizer one = SGD({byRows.weight}, {.lr = 0.1}), two = SGD({whole.weight}, {.lr = 0.1});
  for (auto &[layer, optimizer] : {std::pair{&byRows, &one}, {&whole, &two}}) {
    Tensor loss = lossOf(*layer, common("i", 0), common("g", 0)) + pow(layer->weight, 3).sum(); // tied
    loss.backward();
    optimizer->step();
  }
  CHECK(allclose(byRows.weight, whole.weight, 1e-12, 1e-12));
  CHECK_ERROR(
      {
        Optimizer adam = SparseAdam({whole.weight});
        lossOf(whole, common("i", 0), common("g", 0)).backward();
        adam.step();
      },
      "SparseAdam: the gradient of the parameter f64[7, 3] is not by rows");
  CHECK_NOTHROW([&] { // rules that read the whole gradient still work
    nn::Embedding table = tableOf(true);
    Optimizer adam = Adam({table.weight});
    lossOf(table, common("i", 0), common("g", 0)).backward();
    adam.step();
  }());
}

TEST_CASE("A step by rows writes them into the table") {
  nn::Embedding layer(1000, 8, {.sparse = true});
  Optimizer optimizer = SGD({layer.weight}, {.lr = 0.1});
  auto step = [&] {
    optimizer.zero_grad();
    layer(tensor({3, 5, 3})).sum().backward();
    optimizer.step();
    layer.weight->wait();
    return layer.weight->bytes().data();
  };
  step(); // copies the table
  const void *first = step();
  int same = 0;
  for (int i = 0; i < 20; ++i)
    same += step() == first;
  CHECK(same > 0); // not always: a task may still reference the memory
  Tensor none = zeros({0}, i64);
  optimizer.zero_grad();
  layer(none).sum().backward();
  CHECK_NOTHROW(optimizer.step());
}
