// burin-bench-eager: measures single ops, eagerly and jitted. Reads lines "eager NAME" and "jit NAME" from stdin and
// prints the seconds of a call to stdout, up to its result; "list" prints the names. "changing NAME" measures eager
// calls whose indices or sizes are new each time; "list changing" prints their names. tools/bench/pages/eager.py has
// the same ops for PyTorch.
#include <burin/burin.h>
#include <chrono>
#include <iostream>
#include <map>
#include <sstream>

using namespace burin;

namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<Tensor>;

struct Op {
  const char *name;
  std::vector<std::vector<int64_t>> shapes; // of its f32 inputs
  Tensor (*call)(const Tensors &);
  int64_t indices = 0; // so many random rows of the first input are a further, last input
};

const std::vector<Op> kOps = {
    {"matmul 1024x1024x1024", {{1024, 1024}, {1024, 1024}}, [](const Tensors &t) { return matmul(t[0], t[1]); }},
    {"matmul 64x768x3072", {{64, 768}, {768, 3072}}, [](const Tensors &t) { return matmul(t[0], t[1]); }},
    {"linear 128x784x512", {{128, 784}, {512, 784}, {512}}, [](const Tensors &t) { return linear(t[0], t[1], t[2]); }},
    {"batched matmul 48x128x64x128",
     {{48, 128, 64}, {48, 64, 128}},
     [](const Tensors &t) { return matmul(t[0], t[1]); }},
    {"conv 3x3 64 to 64, 56x56",
     {{1, 64, 56, 56}, {64, 64, 3, 3}},
     [](const Tensors &t) { return conv(t[0], t[1], std::nullopt, {1}, {1}); }},
    {"conv 1x1 64 to 256, 56x56",
     {{1, 64, 56, 56}, {256, 64, 1, 1}},
     [](const Tensors &t) { return conv(t[0], t[1]); }},
    {"depthwise conv 3x3 of 144, 56x56",
     {{1, 144, 56, 56}, {144, 1, 3, 3}},
     [](const Tensors &t) { return conv(t[0], t[1], std::nullopt, {1}, {1}, {}, 144); }},
    {"max pool 3x3 stride 2, 64x112x112",
     {{1, 64, 112, 112}},
     [](const Tensors &t) { return max_pool(t[0], {3}, {2}, {1}); }},
    {"average pool 2x2, 64x112x112", {{1, 64, 112, 112}}, [](const Tensors &t) { return avg_pool(t[0], {2}); }},
    {"add 1e6", {{1000000}, {1000000}}, [](const Tensors &t) { return t[0] + t[1]; }},
    {"add a row, 4096x512", {{4096, 512}, {512}}, [](const Tensors &t) { return t[0] + t[1]; }},
    {"exp 1e6", {{1000000}}, [](const Tensors &t) { return exp(t[0]); }},
    {"tanh 1e6", {{1000000}}, [](const Tensors &t) { return tanh(t[0]); }},
    {"gelu 512x3072", {{512, 3072}}, [](const Tensors &t) { return gelu(t[0]); }},
    {"relu 64x56x56", {{1, 64, 56, 56}}, [](const Tensors &t) { return relu(t[0]); }},
    {"maximum 1e6", {{1000000}, {1000000}}, [](const Tensors &t) { return maximum(t[0], t[1]); }},
    {"softmax 1024x1024", {{1024, 1024}}, [](const Tensors &t) { return softmax(t[0]); }},
    {"layer norm 512x768", {{512, 768}, {768}, {768}}, [](const Tensors &t) { return layer_norm(t[0], t[1], t[2]); }},
    {"batch norm 64x56x56",
     {{1, 64, 56, 56}, {64}, {64}, {64}, {64}},
     [](const Tensors &t) { return batch_norm(t[0], t[1], t[4], t[2], t[3]); }},
    {"group norm of 8, 64x56x56", {{1, 64, 56, 56}}, [](const Tensors &t) { return group_norm(t[0], 8); }},
    {"sum over rows, 4096x512", {{4096, 512}}, [](const Tensors &t) { return t[0].sum(0); }},
    {"sum over columns, 4096x512", {{4096, 512}}, [](const Tensors &t) { return t[0].sum(1); }},
    {"mean 1e6", {{1000000}}, [](const Tensors &t) { return t[0].mean(); }},
    {"argmax 1000x1000", {{1000, 1000}}, [](const Tensors &t) { return argmax(t[0], 1); }},
    {"cumsum 1000x1000", {{1000, 1000}}, [](const Tensors &t) { return cumsum(t[0], 1); }},
    {"transpose 2048x2048", {{2048, 2048}}, [](const Tensors &t) { return transpose(t[0]); }},
    {"heads, 8x128x12x64 to 8x12x128x64",
     {{8, 128, 12, 64}},
     [](const Tensors &t) { return transpose(t[0], {0, 2, 1, 3}); }},
    {"concat of 4 over channels, 64x56x56",
     {{1, 64, 56, 56}, {1, 64, 56, 56}, {1, 64, 56, 56}, {1, 64, 56, 56}},
     [](const Tensors &t) { return concat(t, 1); }},
    {"embedding, 1000 of 30522x768", {{30522, 768}}, [](const Tensors &t) { return take(t[0], t[1], 0); }, 1000},
    {"sort 1e5", {{100000}}, [](const Tensors &t) { return sort(t[0]).values; }},
    {"topk 100 of 1e6", {{1000000}}, [](const Tensors &t) { return topk(t[0], 100).values; }},
    {"attention of 12 heads, 128x64",
     {{1, 12, 128, 64}, {1, 12, 128, 64}, {1, 12, 128, 64}},
     [](const Tensors &t) { return scaled_dot_product_attention(t[0], t[1], t[2]); }},
};

/// A call whose indices or sizes depend on a number from 1 to 400.
struct Changing {
  const char *name;
  Tensor (*call)(int64_t i);
};

const Tensor &table() {
  static const Tensor rows = randn({600, 64}).wait();
  return rows;
}
Tensor zerosOf(const Shape &shape) { return zeros(shape); }

const std::vector<Changing> kChanging = {
    {"row i of 600x64", [](int64_t i) { return table()(i); }},
    {"rows i to i + 8 of 600x64", [](int64_t i) { return table()(Slice(i, i + 8)); }},
    {"concat of ix64 and 1x64", [](int64_t i) { return concat({table()(Slice(0, i)), table()(Slice(0, 1))}, 0); }},
    {"split of 600x64 by i rows", [](int64_t i) { return split(table(), i)[0]; }},
    {"pad of 64x64, i columns", [](int64_t i) { return pad(table()(Slice(0, 64)), {i, 0}); }},
    {"64 columns, repeated i times", [](int64_t i) { return table()(0).repeat({i, 1}); }},
    {"softmax of ix64", [](int64_t i) { return softmax(zerosOf({i, 64})); }},
    {"product of ix64 and 64x64", [](int64_t i) { return matmul(zerosOf({i, 64}), table()(Slice(0, 64))); }},
    {"attention of 1 row and i keys, 4 heads of 16",
     [](int64_t i) {
       const Tensor keys = zerosOf({1, 4, i, 16});
       return scaled_dot_product_attention(zerosOf({1, 4, 1, 16}), keys, keys);
     }},
    {"conv 3x3 of 8 channels, 20 + i by 23 + i",
     [](int64_t i) {
       static const Tensor weight = randn({8, 8, 3, 3}).wait();
       return conv(zerosOf({1, 8, 20 + i, 23 + i}), weight);
     }},
    {"max pool 3x3 stride 2 of 8 channels, 20 + i by 23 + i",
     [](int64_t i) { return max_pool(zerosOf({1, 8, 20 + i, 23 + i}), {3}, {2}, {1}); }},
};

/// Returns the seconds per call. Each call is a new one, in each measurement of the process.
double secondsOfNew(const Changing &changing) {
  constexpr int64_t kCalls = 40, kMost = 400;
  static std::map<const Changing *, int64_t> last;
  int64_t &i = last[&changing];
  if (i + kCalls >= kMost)
    throw Error("every call has been made");
  changing.call(++i).wait(); // compiles what all calls need
  const auto begin = Clock::now();
  for (int64_t n = 1; n < kCalls; ++n)
    changing.call(++i).wait();
  return std::chrono::duration<double>(Clock::now() - begin).count() / double(kCalls - 1);
}

Tensors inputsOf(const Op &op) {
  manual_seed(1);
  Tensors inputs;
  for (const std::vector<int64_t> &shape : op.shapes)
    inputs.push_back(abs(randn(Shape(shape.begin(), shape.end()))).wait());
  if (op.indices)
    inputs.push_back(randint(0, op.shapes[0][0], {op.indices}).wait());
  return inputs;
}

/// Returns the seconds per call, averaged over about 50 ms of calls; each waits for its result.
template <class Call> double secondsOf(const Call &call) {
  constexpr int kWarmUp = 40; // compiles, and eager products again when they repeat
  for (int i = 0; i < kWarmUp; ++i)
    call().wait();
  for (int64_t calls = 1;; calls *= 2) {
    const auto begin = Clock::now();
    for (int64_t i = 0; i < calls; ++i)
      call().wait();
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    if (taken > .05)
      return taken / double(calls);
  }
}

double measure(const std::string &mode, const std::string &name) {
  for (const Changing &changing : kChanging)
    if (mode == "changing" && name == changing.name)
      return secondsOfNew(changing);
  for (const Op &op : kOps) {
    if (name != op.name)
      continue;
    const Tensors inputs = inputsOf(op);
    if (mode == "eager")
      return secondsOf([&] { return op.call(inputs); });
    auto jitted = jit([&](const Tensors &given) { return op.call(given); });
    return secondsOf([&] { return jitted(inputs); });
  }
  throw Error("no op is named " + name);
}

} // namespace

int main() try {
  NoGrad off;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "list") {
      for (const Op &op : kOps)
        std::cout << op.name << "\n";
      std::cout << "\n" << std::flush;
    } else if (line == "list changing") {
      for (const Changing &changing : kChanging)
        std::cout << changing.name << "\n";
      std::cout << "\n" << std::flush;
    } else {
      const size_t space = line.find(' ');
      std::cout << measure(line.substr(0, space), line.substr(space + 1)) << "\n" << std::flush;
    }
  }
} catch (const std::exception &error) {
  std::cerr << error.what() << "\n";
  return 1;
}
