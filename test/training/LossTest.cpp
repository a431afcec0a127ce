// Losses and their gradients compared with PyTorch, in f64; see make_losses.py.
#include "test/frontend/Check.h"
#include "test/training/Cases.h"
#include <cmath>

using namespace burin::test;

namespace {

using Arguments = std::vector<Tensor>;
using Loss = std::function<Tensor(const Arguments &)>;

std::map<std::string, Loss> classLosses() {
  auto ce = [](CrossEntropyOptions options) -> Loss {
    return [=](const Arguments &a) {
      CrossEntropyOptions now = options;
      if (a.size() > 2)
        now.weight = a[2];
      return cross_entropy(a[0], a[1], now);
    };
  };
  auto nll = [](Reduction reduction) -> Loss {
    return [=](const Arguments &a) {
      return nll_loss(a[0], a[1],
                      {.weight = a.size() > 2 ? std::optional(a[2]) : std::nullopt, .reduction = reduction});
    };
  };
  return {{"cross_entropy", ce({})},
          {"cross_entropy sum", ce({.reduction = Reduction::Sum})},
          {"cross_entropy none", ce({.reduction = Reduction::None})},
          {"cross_entropy weight", ce({})},
          {"cross_entropy ignore", ce({.ignore_index = 3})},
          {"cross_entropy smoothing", ce({.label_smoothing = 0.1})},
          {"cross_entropy smoothing weight", ce({.label_smoothing = 0.3})},
          {"cross_entropy large", ce({})},
          {"cross_entropy image", ce({})},
          {"cross_entropy row", ce({})},
          {"cross_entropy probabilities", ce({})},
          {"cross_entropy probabilities weight smoothing", ce({.label_smoothing = 0.1})},
          {"cross_entropy probabilities image", ce({})},
          {"nll_loss", nll(Reduction::Mean)},
          {"nll_loss weight sum", nll(Reduction::Sum)},
          {"nll_loss none", nll(Reduction::None)}};
}

std::map<std::string, Loss> elementLosses() {
  using R = Reduction;
  return {
      {"mse_loss mean", [](auto &a) { return mse_loss(a[0], a[1]); }},
      {"mse_loss sum", [](auto &a) { return mse_loss(a[0], a[1], R::Sum); }},
      {"mse_loss none", [](auto &a) { return mse_loss(a[0], a[1], R::None); }},
      {"l1_loss", [](auto &a) { return l1_loss(a[0], a[1]); }},
      {"smooth_l1_loss", [](auto &a) { return smooth_l1_loss(a[0], a[1]); }},
      {"smooth_l1_loss beta", [](auto &a) { return smooth_l1_loss(a[0], a[1], R::Sum, 0.25); }},
      {"huber_loss", [](auto &a) { return huber_loss(a[0], a[1]); }},
      {"huber_loss delta", [](auto &a) { return huber_loss(a[0], a[1], R::None, 0.5); }},
      {"binary_cross_entropy", [](auto &a) { return binary_cross_entropy(a[0], a[1]); }},
      {"binary_cross_entropy weight",
       [](auto &a) { return binary_cross_entropy(a[0], a[1], {.weight = a[2], .reduction = R::Sum}); }},
      {"binary_cross_entropy_with_logits", [](auto &a) { return binary_cross_entropy_with_logits(a[0], a[1]); }},
      {"binary_cross_entropy_with_logits weights",
       [](auto &a) {
         return binary_cross_entropy_with_logits(a[0], a[1], {.weight = a[2], .pos_weight = a[3], .reduction = R::Sum});
       }},
      {"kl_div batchmean", [](auto &a) { return kl_div(a[0], a[1], R::BatchMean); }},
      {"kl_div sum", [](auto &a) { return kl_div(a[0], a[1], R::Sum); }},
      {"kl_div log_target", [](auto &a) { return kl_div(a[0], a[1], R::None, true); }},
  };
}

std::map<std::string, Loss> otherLosses() {
  using R = Reduction;
  auto ctc = [](CtcOptions options) -> Loss {
    return [=](const Arguments &a) { return ctc_loss(log_softmax(a[0], 2), a[1], a[2], a[3], options); };
  };
  auto triplet = [](TripletMarginOptions options) -> Loss {
    return [=](const Arguments &a) { return triplet_margin_loss(a[0], a[1], a[2], options); };
  };
  return {
      {"cosine_embedding_loss", [](auto &a) { return cosine_embedding_loss(a[0], a[1], a[2]); }},
      {"cosine_embedding_loss margin", [](auto &a) { return cosine_embedding_loss(a[0], a[1], a[2], -0.5, R::None); }},
      {"triplet_margin_loss", triplet({})},
      {"triplet_margin_loss swap p", triplet({.margin = 4, .p = 3, .swap = true})},
      {"triplet_margin_loss none p1", triplet({.margin = 4, .p = 1, .reduction = R::None})},
      {"ctc_loss", ctc({})},
      {"ctc_loss none", ctc({.reduction = R::None})},
      {"ctc_loss blank empty", ctc({.blank = 4, .reduction = R::Sum})},
      {"ctc_loss zero_infinity", ctc({.reduction = R::Sum, .zero_infinity = true})}};
}

/// Returns the loss, then the gradients of the arguments `wanted`; the losses of a list are weighted by 1, 2, …
Arguments lossAndGradients(const Loss &loss, const Arguments &arguments, const std::vector<int> &wanted) {
  Tensor value = loss(arguments);
  Tensor weights = (iota({elements(value.shape())}, i64) + 1).to(value.dtype()).reshape(value.shape());
  Arguments variables;
  for (int i : wanted)
    variables.push_back(arguments[size_t(i)]);
  Arguments results = grad((value * weights).sum(), variables);
  results.insert(results.begin(), value);
  return results;
}

/// Compares eager gradients with finite differences. Probabilities 0 and 1, which cannot be moved to both sides, are
/// moved inwards.
void checkDifferences(const Loss &loss, const Arguments &arguments, const std::vector<int> &wanted,
                      bool areProbabilities) {
  Arguments variables;
  for (int i : wanted) {
    const Tensor &argument = arguments[size_t(i)];
    variables.push_back(areProbabilities ? argument * 0.998 + 0.001 : argument);
  }
  auto function = [&](const Arguments &given) {
    Arguments all = arguments;
    for (size_t i = 0; i < wanted.size(); ++i)
      all[size_t(wanted[i])] = given[i];
    return Arguments{loss(all)};
  };
  CHECK_NOTHROW(gradcheck(function, variables));
}

void check(const std::string &name, const Loss &loss, const Tensors &given) {
  Arguments arguments;
  std::vector<TensorSpec> specs;
  std::vector<int> wanted;
  for (int i = 0; given.find(std::to_string(i)); ++i) {
    arguments.push_back(given.at(std::to_string(i)));
    specs.push_back(arguments.back().spec());
    if (given.find("grad." + std::to_string(i)))
      wanted.push_back(i);
  }
  checkClose(loss(arguments), given.at("loss"), 1e-10, name + ", eager");
  Graph graph = trace([&](const Arguments &a) { return lossAndGradients(loss, a, wanted); }, specs);
  Arguments got = graph.run(arguments);
  checkClose(got[0], given.at("loss"), 1e-10, name + ", compiled");
  for (size_t i = 0; i < wanted.size(); ++i)
    checkClose(got[i + 1], given.at("grad." + std::to_string(wanted[i])), 1e-8,
               name + ", gradient of argument " + std::to_string(wanted[i]));
  checkDifferences(loss, arguments, wanted,
                   name.starts_with("binary_cross_entropy") && name.find("with_logits") == std::string::npos);
}

void checkAll(const std::map<std::string, Loss> &losses) {
  static const auto cases = loadCases("losses.json");
  for (const auto &[name, loss] : losses) {
    INFO(name);
    REQUIRE(cases.count(name));
    check(name, loss, cases.at(name));
  }
}

} // namespace

TEST_CASE("losses over classes are PyTorch's") { checkAll(classLosses()); }
TEST_CASE("losses of elements are PyTorch's") { checkAll(elementLosses()); }
TEST_CASE("losses of vectors and sequences are PyTorch's") { checkAll(otherLosses()); }

TEST_CASE("each stored case of a loss is used") {
  CHECK(loadCases("losses.json").size() == classLosses().size() + elementLosses().size() + otherLosses().size());
}

TEST_CASE("a traced loss serves any batch and refuses classes that do not exist") {
  Dim n("n");
  Graph g = trace([](const Tensor &x, const Tensor &t) { return cross_entropy(x, t); }, {{f32, {n, 3}}, {i64, {n}}});
  for (int size : {1, 2, 17}) {
    Tensor x = randn({size, 3}), t = randint(0, 3, {size});
    CHECK(largestDifference(g.run({x, t})[0], cross_entropy(x, t)) < 1e-6);
  }
  CHECK_ERROR(g.run({randn({2, 3}), tensor({1, 3})})[0].item(), "a target is no class: there are 3");
  CHECK_ERROR(g.run({randn({2, 3}), tensor({-1, 0})})[0].item(), "a target is no class: there are 3");
  CHECK(std::isfinite(g.run({randn({2, 3}), tensor({1, -100})})[0].item()));
}

TEST_CASE("infinite losses of sequences that do not fit") {
  Tensor x = log_softmax(randn({2, 1, 4})), target = tensor({{1, 1}});
  CHECK(std::isinf(ctc_loss(x, target, tensor({2}), tensor({2})).item()));
  CHECK(ctc_loss(x, target, tensor({2}), tensor({2}), {.zero_infinity = true}).item() == 0);
}

TEST_CASE("modules of losses") {
  Tensor x = randn({4, 3}), t = tensor({0, 2, 1, 1}), w = tensor({0.5, 1.0, 2.0});
  nn::CrossEntropyLoss loss({.weight = w, .label_smoothing = 0.1});
  CHECK(loss.state_dict().front().first == "weight");
  CHECK(loss(x, t).item() == cross_entropy(x, t, {.weight = w, .label_smoothing = 0.1}).item());
  CHECK(nn::MSELoss(Reduction::Sum)(x, x * 2).item() == mse_loss(x, x * 2, Reduction::Sum).item());
  CHECK(nn::NLLLoss()(log_softmax(x), t).item() == Approx(cross_entropy(x, t).item()));
  CHECK(nn::BCEWithLogitsLoss()(x, x).item() == binary_cross_entropy_with_logits(x, x).item());
}

TEST_CASE("losses refuse what does not fit") {
  Tensor x = randn({4, 3}), t = tensor({0, 2, 1, 1});
  CHECK_ERROR(cross_entropy(x, tensor({0, 2, 3, 1})), "cross_entropy", "target 3 at position 2", "3,", "ignore_index");
  CHECK_ERROR(cross_entropy(x, tensor({0, 2, -1, 1})), "target -1");
  CHECK_ERROR(cross_entropy(x, tensor({0, 2})), "i64[2]", "f32[4, 3]", "[4]");
  CHECK_ERROR(cross_entropy(x, randn({4})), "f32[4]", "f32[4, 3]", "probabilities");
  CHECK_ERROR(cross_entropy(x.to(i64), t), "must be floats");
  CHECK_ERROR(cross_entropy(x, t, {.weight = ones({2})}), "f32[2]", "3 classes");
  CHECK_ERROR(cross_entropy(x, t, {.label_smoothing = 2}), "label_smoothing");
  CHECK_ERROR(cross_entropy(x, t, {.reduction = Reduction::BatchMean}), "kl_div");
  CHECK_ERROR(nll_loss(x, t > 1), "bool[4]", "integers");
  CHECK_ERROR(mse_loss(x, randn({4})), "mse_loss", "f32[4]", "f32[4, 3]");
  CHECK_ERROR(mse_loss(zeros({0, 3}), zeros({0, 3})), "empty batch");
  CHECK_ERROR(cross_entropy(zeros({0, 3}), zeros({0}, i64)), "empty batch");
  CHECK(mse_loss(zeros({0, 3}), zeros({0, 3}), Reduction::Sum).item() == 0);
  CHECK_ERROR(binary_cross_entropy(x, t), "must be floats");
  CHECK_ERROR(binary_cross_entropy_with_logits(x, x, {.pos_weight = ones({2})}), "f32[2]");
  CHECK_ERROR(triplet_margin_loss(x, x, randn({4, 2})), "negative", "f32[4, 2]");
  CHECK_ERROR(cosine_embedding_loss(x, x, x), "[N, D]");
  CHECK_ERROR(ctc_loss(x, t, t, t), "log_probs [T, N, C]");
  Tensor logs = log_softmax(randn({3, 1, 4}));
  CHECK_ERROR(ctc_loss(logs, tensor({{1}}), tensor({4}), tensor({1})), "input_lengths has 4");
  CHECK_ERROR(huber_loss(x, x, Reduction::Mean, 0), "delta");
}
