// The second training demo: trains a small character-level GPT on a text and then generates a continuation:
//   burin-char-gpt TEXT-FILE STEPS
#include <burin/burin.h>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

using namespace burin;

namespace {

constexpr int64_t kContext = 64, kSize = 128, kHeads = 4, kLayers = 4, kBatch = 16, kCharacters = 128;

/// Maps characters x [N, kContext] to the logits of the character that follows each of them.
struct Gpt : nn::Module {
  nn::Embedding token = register_module("token", nn::Embedding(kCharacters, kSize));
  nn::Embedding position = register_module("position", nn::Embedding(kContext, kSize));
  nn::TransformerEncoder blocks =
      register_module("blocks", nn::TransformerEncoder(makeLayer, kLayers, nn::LayerNorm(kSize)));
  nn::Linear head = register_module("head", nn::Linear(kSize, kCharacters, {.bias = false}));

  static nn::TransformerEncoderLayer makeLayer() {
    return {
        kSize,
        kHeads,
        {.dim_feedforward = 4 * kSize, .dropout = 0, .activation = "gelu", .batch_first = true, .norm_first = true}};
  }
  Gpt() : Module("Gpt") {
    apply([](nn::Module &module) { // initialisation of Radford et al. 2019
      if (module.kind() == "Linear" || module.kind() == "Embedding")
        for (auto [name, parameter] : module.named_parameters())
          if (name == "weight")
            parameter.set(nn::init::normal(parameter->shape(), 0, 0.02));
    });
  }
  Tensor operator()(const Tensor &x) { return head(blocks(token(x) + position.weight, {.is_causal = true})); }
};

/// Examples: a slice of the text, and the same slice shifted by one character.
struct Parts : data::Dataset {
  std::vector<int64_t> text;
  explicit Parts(std::vector<int64_t> text) : text(std::move(text)) {}
  int64_t size() const override { return int64_t(text.size()) - kContext; }
  data::Example get(int64_t index) const override {
    auto at = text.begin() + index;
    return {from_vector(std::vector<int64_t>(at, at + kContext)),
            from_vector(std::vector<int64_t>(at + 1, at + kContext + 1))};
  }
};

std::vector<int64_t> readText(const char *path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() <= size_t(2 * kContext))
    throw std::runtime_error(std::string(path) + " is not there, or too short");
  std::vector<int64_t> text;
  for (char c : bytes)
    text.push_back(uint8_t(c) < kCharacters ? uint8_t(c) : '?');
  return text;
}

/// Generates `count` characters, each sampled from the distribution that the network predicts.
std::string continued(const Jit<Gpt> &infer, std::vector<int64_t> text, int count, double temperature) {
  data::Random random(7, 0, 0);
  std::string result;
  for (int i = 0; i < count; ++i) {
    std::vector<int64_t> last(text.end() - kContext, text.end());
    Tensor logits = infer(from_vector(last, Shape{1, kContext}))[{0, -1}];
    std::vector<double> weights = softmax(logits / temperature).to_vector<double>();
    double at = random.uniform();
    int64_t next = 0;
    while (next + 1 < kCharacters && (at -= weights[size_t(next)]) > 0)
      ++next;
    text.push_back(next);
    result += char(next);
  }
  return result;
}

void train(const char *path, int steps) {
  manual_seed(1);
  const std::vector<int64_t> text = readText(path);
  Gpt net;
  optim::AdamW optimizer(optim::decay_matrices_only(net, optim::AdamWOptions{.lr = 1e-3, .weight_decay = 0.1}));
  const int warmUp = std::max(1, steps / 10);
  optim::SequentialLR schedule(optimizer,
                               {optim::LinearLR(optimizer, 0.05, 1, warmUp),
                                optim::CosineAnnealingLR(optimizer, std::max(1, steps - warmUp), 1e-4)},
                               {warmUp});
  auto step = jit([&](const Tensor &x, const Tensor &target) {
    Tensor loss = cross_entropy(net(x).flatten(0, 1), target.flatten(0, 1));
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), 1.0);
    optimizer.step();
    optimizer.zero_grad();
    schedule.step();
    return loss;
  });
  data::DataLoader loader(std::make_shared<Parts>(text),
                          {.batch_size = kBatch, .shuffle = true, .drop_last = true, .workers = 1});
  std::printf("%s\n%zu characters, %d steps\n", net.str().c_str(), text.size(), steps);
  const auto start = std::chrono::steady_clock::now();
  ProgressBar progress(steps, "training");
  Mean loss;
  for (int i = 0; i < steps; ++i) {
    auto batch = loader.next();
    if (!batch)
      batch = loader.next();
    loss.add(step((*batch)[0], (*batch)[1]));
    progress.step();
    if ((i + 1) % std::max(1, steps / 5) == 0) {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("step %d  loss %.3f  perplexity %.1f  %.0f s\n", i + 1, loss.value(), std::exp(loss.value()),
                  seconds);
      loss = Mean();
    }
  }
  net.eval();
  std::printf("---\n%s\n", continued(jit(net), std::vector(text.begin(), text.begin() + kContext), 300, 0.8).c_str());
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: burin-char-gpt TEXT-FILE STEPS\n");
    return 2;
  }
  try {
    train(argv[1], std::max(1, std::atoi(argv[2])));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "burin-char-gpt: %s\n", error.what());
    return 1;
  }
}
