// Algorithms with data-dependent control flow give the same bits eagerly, jitted and from an artifact.
#include "test/frontend/Check.h"
#include <burin/graph/control.h>

namespace {

using Tensors = std::vector<Tensor>;

Tensors list(const Tensor &x) { return {x}; }
Tensors list(const Tensors &x) { return x; }

template <class T> void checkSame(const std::vector<Tensors> &all) {
  for (const Tensors &other : all) {
    REQUIRE(other.size() == all[0].size());
    for (size_t i = 0; i < other.size(); ++i) {
      INFO("result " << i);
      REQUIRE(other[i].shape() == all[0][i].shape());
      if (other[i].dtype() == f32)
        CHECK(floats(other[i]) == floats(all[0][i]));
      else
        CHECK(ints(other[i].to(i64)) == ints(all[0][i].to(i64)));
    }
  }
}

/// Calls f on the inputs eagerly, jitted, and compiled for the symbolic sizes of `specs`. Checks that all agree and
/// returns the results.
template <class F> Tensors everyWay(F &&f, const Tensors &inputs, std::vector<TensorSpec> specs = {}) {
  if (specs.empty())
    for (const Tensor &input : inputs)
      specs.push_back(input.spec());
  auto call = [&](const Tensors &in) {
    if constexpr (std::is_invocable_v<F, const Tensor &, const Tensor &, const Tensor &>)
      return list(f(in[0], in[1], in[2]));
    else if constexpr (std::is_invocable_v<F, const Tensor &, const Tensor &>)
      return list(f(in[0], in[1]));
    else
      return list(f(in[0]));
  };
  auto jitted = jit([&](const Tensors &in) { return call(in); });
  Graph graph = trace([&](const Tensors &in) { return call(in); }, specs);
  Tensors eager = call(inputs);
  checkSame<float>({eager, jitted(inputs), graph.run(inputs), compile(graph).run(inputs)});
  return eager;
}

// ---- beam search

/// Finds the `width` most likely sentences under a table of log probabilities [words, words]. Returns sentences [width,
/// length] and their scores [width]. Ends when all sentences have reached word 0, or after `length` words.
Tensors beamSearch(const Tensor &table, int64_t width, int64_t length) {
  const int64_t words = table.shape()[0].value();
  Tensor sentences = zeros({width, length}, i64), last = full({width}, 1, i64);
  // Initially all beams are equal, so only the first may count.
  Tensor scores = where(arange(width) == 0, 0.0, -1e30).to(f32), isOver = zeros({width}, boolean);
  auto goesOn = [=](const Tensor &i, const Tensor &, const Tensor &, const Tensor &, const Tensor &over) {
    return (i < length) & !all(over);
  };
  auto step = [=](const Tensor &i, const Tensor &text, const Tensor &score, const Tensor &word, const Tensor &over) {
    // A finished sentence continues with word 0 at no cost.
    Tensor stay = where(arange(words) == 0, 0.0, -1e30).to(f32);
    Tensor next = where(unsqueeze(over, {1}), unsqueeze(stay, {0}), take(table, word, 0));
    auto [best, at] = topk(reshape(unsqueeze(score, {1}) + next, {width * words}), width);
    Tensor beam = floor_divide(at, words), chosen = remainder(at, words);
    Tensor isHere = unsqueeze(arange(length) == i, {0});
    return std::make_tuple(i + 1, where(isHere, unsqueeze(chosen, {1}), take(text, beam, 0)), best, chosen,
                           take(over, beam, 0) | (chosen == 0));
  };
  auto [i, text, score, word, over] =
      while_loop(goesOn, step, std::make_tuple(zeros({}, i64), sentences, scores, last, isOver));
  return {text, score, i};
}

/// The same in plain C++.
std::vector<std::pair<float, std::vector<int64_t>>> beamSearchByHand(const std::vector<float> &table, size_t words,
                                                                     size_t width, size_t length) {
  using Beam = std::pair<float, std::vector<int64_t>>;
  std::vector<Beam> beams{{0.0f, {}}};
  for (size_t i = 0; i < length; ++i) {
    std::vector<Beam> all;
    for (const Beam &beam : beams) {
      bool isOver = !beam.second.empty() && beam.second.back() == 0;
      size_t word = beam.second.empty() ? 1 : size_t(beam.second.back());
      for (size_t w = 0; w < (isOver ? 1 : words); ++w) {
        all.push_back(beam);
        all.back().first += isOver ? 0.0f : table[word * words + w];
        all.back().second.push_back(int64_t(w));
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Beam &a, const Beam &b) { return a.first > b.first; });
    all.resize(std::min(all.size(), width));
    beams = all;
  }
  return beams;
}

} // namespace

TEST_CASE("beam search with while_loop") {
  manual_seed(4);
  const int64_t words = 13, width = 4, length = 12;
  for (int round = 0; round < 3; ++round) {
    Tensor table = log_softmax(randn({words, words}) * 3, 1);
    Tensors found = everyWay([&](const Tensor &t) { return beamSearch(t, width, length); }, {table});
    auto want = beamSearchByHand(floats(table), size_t(words), size_t(width), size_t(length));
    std::vector<int64_t> text = ints(found[0]);
    for (size_t b = 0; b < size_t(width); ++b) {
      CHECK(std::equal(want[b].second.begin(), want[b].second.end(), text.begin() + int64_t(b) * length));
      CHECK(floats(found[1])[b] == Approx(want[b].first).epsilon(1e-5));
    }
    CHECK(found[2].item<int64_t>() <= length);
  }
}

// ---- an LSTM language model: a scan over the words, with an inner scan over the layers

TEST_CASE("an LSTM language model with a scan in a scan") {
  manual_seed(5);
  const int64_t layers = 3, size = 16, words = 20;
  Tensor embedding = randn({words, size}), weights = randn({layers, 2 * size, 4 * size}) * 0.3,
         out = randn({size, words});
  auto cell = [=](const Tensor &x, const Tensor &w, const Tensor &h, const Tensor &c) {
    Tensor gates = matmul(concat({x, h}, 1), w);
    auto gate = [&](int64_t i) { return gates.slice(1, i * size, (i + 1) * size); };
    Tensor next = sigmoid(gate(1)) * c + sigmoid(gate(0)) * tanh(gate(2));
    return std::make_pair(sigmoid(gate(3)) * tanh(next), next);
  };
  auto model = [=](const Tensor &tokens) { // maps [time, batch] to logits [time, batch, words]
    const Dim batch = tokens.shape()[1];
    Tensor zero = zeros({layers, batch, size});
    auto word = [=](const Tensors &states, const Tensors &elements) {
      auto layer = [=](const Tensors &below, const Tensors &of) {
        auto [h, c] = cell(below[0], of[0], of[1], of[2]);
        return ScanResult{{h}, {h, c}};
      };
      ScanResult all = scan(layer, {elements[0]}, {weights, states[0], states[1]});
      return ScanResult{{all.outputs[0], all.outputs[1]}, {all.states[0]}};
    };
    return matmul(scan(word, {zero, zero}, {take(embedding, tokens, 0)}).outputs[0], out);
  };
  Tensor tokens = randint(0, words, {7, 5});
  Tensor got = everyWay(model, {tokens}, {{i64, {Dim("time"), Dim("batch")}}})[0];
  // The same, unrolled.
  std::vector<Tensor> h(size_t(layers), zeros({5, size})), c = h;
  for (int64_t t = 0; t < 7; ++t) {
    Tensor x = take(embedding, tokens(t), 0);
    for (size_t l = 0; l < size_t(layers); ++l) {
      std::tie(h[l], c[l]) = cell(x, weights(int64_t(l)), h[l], c[l]);
      x = h[l];
    }
    CHECK(largestDifference(got(t), matmul(x, out)) < 1e-5);
  }
  auto compiled = compile(trace(model, {{i64, {Dim("time"), Dim("batch")}}}));
  for (int64_t time : {1, 2, 19}) {
    Tensor other = randint(0, words, {time, 2});
    CHECK(floats(compiled(other)) == floats(model(other)));
  }
}

// ---- Newton's method within nested cond

TEST_CASE("Newton iterations under nested cond") {
  // The cube root: by Newton's method, for negative numbers by symmetry, and 0 near zero.
  auto root = [](const Tensor &x) {
    auto newton = [&](const Tensor &a) {
      return while_loop(
          [&](const Tensor &y, const Tensor &n) { return (abs(y * y * y - a) > a * 1e-6) & (n < 100); },
          [&](const Tensor &y, const Tensor &n) { return std::make_pair(y - (y * y * y - a) / (3 * y * y), n + 1); },
          std::make_pair(maximum(a, 1.0), zeros({}, i64)));
    };
    return cond(
        abs(x) < 1e-12, [&] { return std::make_pair(x * 0, zeros({}, i64)); },
        [&] {
          return cond(
              x < 0,
              [&] {
                auto [y, n] = newton(-x);
                return std::make_pair(-y, n);
              },
              [&] { return newton(x); });
        });
  };
  auto both = [&](const Tensor &x) {
    auto [y, n] = root(x);
    return Tensors{y, n};
  };
  for (float x : {27.0f, -8.0f, 0.0f, 1e-3f, 12345.678f, -0.5f}) {
    Tensors found = everyWay(both, {tensor(x)});
    CHECK(found[0].item() == Approx(std::cbrt(x)).epsilon(1e-5));
    CHECK((found[1].item<int64_t>() == 0) == (x == 0));
  }
}

// ---- pictures

TEST_CASE("a Mandelbrot picture") {
  const int64_t width = 48, height = 32, most = 60;
  // Maps points to the number of iterations until each diverges: i64 [height, width].
  auto picture = [=](const Tensor &centre) {
    Tensor re = unsqueeze(arange(width).to(f32) * (3.0 / width) - 1.5 + centre(0), {0}) + zeros({height, 1});
    Tensor im = unsqueeze(arange(height).to(f32) * (2.0 / height) - 1 + centre(1), {1}) + zeros({1, width});
    auto inside = [](const Tensor &x, const Tensor &y) { return x * x + y * y <= 4.0; };
    auto [n, x, y, turns] = while_loop(
        [=](const Tensor &n, const Tensor &x, const Tensor &y, const Tensor &) {
          return (n < most) & any(inside(x, y));
        },
        [=](const Tensor &n, const Tensor &x, const Tensor &y, const Tensor &turns) {
          Tensor goesOn = inside(x, y);
          return std::make_tuple(n + 1, where(goesOn, x * x - y * y + re, x), where(goesOn, 2 * x * y + im, y),
                                 turns + goesOn.to(i64));
        },
        std::make_tuple(zeros({}, i64), zeros({height, width}), zeros({height, width}), zeros({height, width}, i64)));
    return turns;
  };
  std::vector<int64_t> turns = ints(everyWay(picture, {tensor({-0.5f, 0.0f})})[0]);
  size_t differ = 0; // points at the edge of the set may differ from f64
  for (int64_t row = 0; row < height; ++row)
    for (int64_t column = 0; column < width; ++column) {
      float cr = float(column) * float(3.0 / width) - 1.5f - 0.5f, ci = float(row) * float(2.0 / height) - 1;
      float x = 0, y = 0;
      int64_t n = 0;
      for (; n < most && x * x + y * y <= 4; ++n) {
        float next = x * x - y * y + cr;
        y = 2 * x * y + ci;
        x = next;
      }
      differ += n != turns[size_t(row * width + column)];
    }
  CHECK(differ < size_t(width * height / 50));
  CHECK(std::count(turns.begin(), turns.end(), most) > 100);
}

TEST_CASE("a ray-marched picture") {
  const int64_t size = 40;
  // A sphere of radius 1 at the origin above a floor at y = -1, seen from z = -3: brightness [size, size].
  auto distance = [](const Tensor &x, const Tensor &y, const Tensor &z) {
    return minimum(sqrt(x * x + y * y + z * z) - 1, y + 1);
  };
  auto picture = [=](const Tensor &light) {
    Tensor u = unsqueeze(arange(size).to(f32) * (2.0 / size) - 1 + light(0) * 0, {0}) + zeros({size, 1});
    Tensor v = 1 - unsqueeze(arange(size).to(f32) * (2.0 / size), {1}) + zeros({1, size});
    Tensor norm = rsqrt(u * u + v * v + 1.5 * 1.5), dx = u * norm, dy = v * norm, dz = 1.5 * norm;
    auto [t, step, n] = while_loop([](const Tensor &t, const Tensor &step,
                                      const Tensor &n) { return any((step > 1e-3) & (t < 20.0)) & (n < 200); },
                                   [=](const Tensor &t, const Tensor &, const Tensor &n) {
                                     Tensor d = distance(dx * t, dy * t, dz * t - 3);
                                     return std::make_tuple(where(t < 20.0, t + d, t), d, n + 1);
                                   },
                                   std::make_tuple(zeros({size, size}), full({size, size}, 1.0, f32), zeros({}, i64)));
    Tensor x = dx * t, y = dy * t, z = dz * t - 3;
    auto slope = [&](const Tensor &ahead, const Tensor &behind) { return (ahead - behind) * 500; };
    const double h = 1e-3;
    Tensor nx = slope(distance(x + h, y, z), distance(x - h, y, z)),
           ny = slope(distance(x, y + h, z), distance(x, y - h, z)),
           nz = slope(distance(x, y, z + h), distance(x, y, z - h));
    Tensor lit = maximum(nx * light(0) + ny * light(1) + nz * light(2), 0.0);
    return where(t < 20.0, lit, 0.0);
  };
  Tensor got = everyWay(picture, {tensor({0.0f, 0.6f, -0.8f})})[0];
  CHECK(got(size / 2, size / 2).item() == Approx(0.8).margin(0.05)); // the sphere's front faces the camera
  CHECK(got(size - 1, 0).item() == Approx(0.6).margin(0.05));        // the floor
  CHECK(got(0, 0).item() == 0);                                      // the sky
}

// ---- Metropolis sampling, with state

TEST_CASE("Metropolis sampling with state") {
  struct Chain : nn::Module {
    Parameter place = register_buffer("place", zeros({64})), accepted = register_buffer("accepted", zeros({}, i64));
    Generator generator{7};
    /// `steps` moves of 64 walkers, whose positions approach a normal distribution with mean 1 and deviation 0.5.
    Tensor run(int64_t steps) {
      auto energy = [](const Tensor &x) { return (x - 1) * (x - 1) * 2; };
      auto [last, count] = fori_loop(
          0, steps,
          [&](const Tensor &, const Tensor &x, const Tensor &count) {
            Tensor to = x + generator.normal({64}, 0, 1), dice = generator.uniform({64}, 0, 1);
            Tensor isTaken = dice < exp(minimum(energy(x) - energy(to), 0.0));
            return std::make_pair(where(isTaken, to, x), count + isTaken.to(i64).sum());
          },
          std::make_pair(place.value(), accepted.value()));
      place.set(last);
      accepted.set(count);
      return last;
    }
  };
  Chain eager, jitted, traced;
  auto step = jit([&](const Tensor &unused) { return jitted.run(25) + unused * 0; });
  Artifact artifact = compile(trace([&](const Tensor &unused) { return traced.run(25) + unused * 0; }, {{f32, {}}}));
  double sum = 0, squares = 0;
  for (int i = 0; i < 20; ++i) {
    std::vector<float> want = floats(eager.run(25));
    CHECK(floats(step(tensor(0.0f))) == want);
    CHECK(floats(artifact(tensor(0.0f))) == want);
    for (float x : want)
      sum += i < 4 ? 0 : x, squares += i < 4 ? 0 : x * x;
  }
  const double n = 16 * 64, mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
  CHECK(mean == Approx(1).margin(0.08));
  CHECK(deviation == Approx(0.5).margin(0.06));
  CHECK(eager.accepted.value().item<int64_t>() == jitted.accepted.value().item<int64_t>());
  CHECK(eager.accepted.value().item<int64_t>() > 0);
}
