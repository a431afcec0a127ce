// Text generation: two functions over the same weights and caches, in one artifact.
#include "test/Features.h"
#include "test/frontend/Check.h"
#include "test/frontend/Gpt.h"
#include "test/onnx/Folder.h"
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

using test::Folder, test::Gpt, test::GptSizes;

namespace {

constexpr int64_t kWords = 101, kLength = 48, kBatch = 3, kLayers = 2;

Artifact compiled(const Gpt &model) { return compile(model.program(kLength)); }

/// Prompts of mixed lengths; the first one has the length `longest`.
struct Prompts {
  std::vector<int64_t> lengths, padded;
  int64_t longest;

  Prompts(int64_t batch, int64_t longest, int64_t words) : longest(longest) {
    for (int64_t b = 0; b < batch; ++b) {
      lengths.push_back(b == 0 ? longest : 1 + (longest * (batch - b)) / (batch + 1) % longest);
      std::vector<int64_t> text = ints(randint(0, words, {lengths.back()}));
      padded.insert(padded.end(), text.begin(), text.end());
      padded.resize(size_t(longest * (b + 1)), 0);
    }
  }
  Tensor tokens() const { return from_vector(padded, Shape{int64_t(lengths.size()), longest}); }
  Tensor ends() const { return from_vector(lengths); }
  void write(const std::string &path) const {
    std::ofstream file(path, std::ios::binary);
    auto put = [&](const std::vector<int64_t> &list) {
      file.write(reinterpret_cast<const char *>(list.data()), std::streamsize(list.size() * 8));
    };
    put({int64_t(lengths.size()), longest});
    put(lengths);
    put(padded);
  }
};

uint64_t hashOf(const Tensor &logits) { // the hash of Generate.c
  uint64_t hash = 14695981039346656037u;
  for (float value : floats(logits))
    hash = (hash ^ std::bit_cast<uint32_t>(value)) * 1099511628211u;
  return hash;
}

/// The output of the process without the compiler.
struct Text {
  struct Step {
    uint64_t hash;
    std::vector<int64_t> words; // generated words, one per prompt
  };
  std::vector<Step> steps;
  long early = 0, late = 0; // resident memory in KB
  double microseconds = 0;  // per step
  std::set<int64_t> distinct;
};
Text generate(const std::string &artifact, const std::string &prompts, int steps, const char *mode, size_t batch) {
  const std::string command =
      std::string(GENERATE_PROGRAM) + " " + artifact + " " + prompts + " " + std::to_string(steps) + " " + mode;
  FILE *pipe = popen(command.c_str(), "r");
  std::string all;
  char buffer[4096];
  while (size_t got = fread(buffer, 1, sizeof buffer, pipe))
    all.append(buffer, got);
  REQUIRE(pclose(pipe) == 0);
  std::istringstream in(all);
  Text text;
  for (int i = 0; i <= steps; ++i) {
    Text::Step step{0, std::vector<int64_t>(batch)};
    in >> std::hex >> step.hash >> std::dec;
    for (int64_t &word : step.words) {
      in >> word;
      text.distinct.insert(word);
    }
    text.steps.push_back(std::move(step));
  }
  in >> text.early >> text.late >> text.microseconds;
  REQUIRE(bool(in));
  return text;
}

/// Returns the first step whose logits differ from the text's in any bit, or -1. The functions are given the text's
/// words.
template <class Prefill, class Decode>
int firstDifference(const Text &text, const Prompts &prompts, Prefill prefill, Decode decode) {
  NoGrad off;
  Tensor positions = prompts.ends(), logits = prefill(prompts.tokens(), positions);
  for (size_t step = 0;; ++step) {
    if (hashOf(logits) != text.steps[step].hash)
      return int(step);
    if (step + 1 == text.steps.size())
      return -1;
    logits = decode(from_vector(text.steps[step].words), positions);
    positions = positions + 1;
  }
}

/// Generates with the artifact in a separate process, and eagerly with the model; both must give the same bits at each
/// step.
void generateAlike(const Gpt &model, int64_t longest, int steps, size_t fewestWords) {
  Folder folder;
  const std::string plate = folder / "gpt.plate";
  compile(model.program(longest)).save(plate);
  int64_t weights = 0;
  for (const Parameter &p : model.parameters())
    weights += int64_t(p->bytes().size());
  const auto bytes = int64_t(std::filesystem::file_size(plate));
  CHECK(bytes > weights);
  CHECK(bytes < weights + weights / 20 + (int64_t(1) << 20)); // code, padded panels
  Prompts prompts(model.sizes.batch, longest, model.sizes.words);
  prompts.write(folder / "prompts");
  for (const char *mode : {"greedy", "sample"}) {
    Text text = generate(plate, folder / "prompts", steps, mode, size_t(model.sizes.batch));
    WARN(mode << ": " << text.distinct.size() << " words, a step of " << text.microseconds << " us, resident "
              << text.early << " KB after 16 steps, " << text.late << " KB at the end, weights " << (weights >> 20)
              << " MB, file " << (bytes >> 20) << " MB");
    CHECK(text.distinct.size() >= fewestWords);
    CHECK(text.late <= text.early + 512);
    CHECK(firstDifference(
              text, prompts, [&](const Tensor &p, const Tensor &l) { return model.prefill(p, l); },
              [&](const Tensor &t, const Tensor &p) { return model.decode(t, p); }) == -1);
  }
}

} // namespace

TEST_CASE("generated text has eager's bits at each step, in a process without the compiler") {
  manual_seed(31);
  GptSizes sizes;
  sizes.words = 307;
  sizes.length = 96;
  Gpt model(sizes);
  model.draw();
  generateAlike(model, 40, 50, 30);
}

TEST_CASE("GPT-2's size generates 256 greedy and 256 sampled words") {
  REQUIRE_LONG_TESTS()
  manual_seed(32);
  Gpt model(GptSizes::small());
  model.draw();
  generateAlike(model, 512, 256, 100);
}

TEST_CASE("generated logits are PyTorch's") { // made by make_generation.py
  Gpt model;
  uint64_t index = 0;
  for (auto &[name, parameter] : model.named_parameters()) { // formulas that make_generation.py repeats
    std::vector<float> values(size_t(elements(parameter->shape()).value()));
    const bool isScale = name.find("norm") != std::string::npos && name.ends_with("weight");
    for (float &value : values)
      value = float(double((++index * 2654435761u) & 0xffffffffu) / 4294967296.0 - 0.5) * .25f + float(isScale);
    parameter.set(from_vector(values, parameter->shape()));
  }
  std::map<std::string, Tensor> stored;
  for (auto &[name, tensor] : load_safetensors(GENERATION_VALUES))
    stored.emplace(name, tensor);
  const Tensor words = stored.at("words"), lengths = stored.at("lengths"), want = stored.at("logits");
  Artifact artifact = compiled(model), decode = artifact.function("decode");
  Tensor positions = lengths, logits = artifact(stored.at("prompts"), lengths);
  for (int64_t step = 0;; ++step) {
    INFO("step " << step);
    CHECK(largestDifference(logits, want(step)) < 1e-5 * (1 + want(step).abs().max().item()));
    if (step + 1 == want.shape()[0].value())
      break;
    logits = decode(words(step), positions);
    positions = positions + 1;
  }
}

TEST_CASE("prefill and decode share weights and caches in one artifact") {
  manual_seed(12);
  Gpt model;
  Folder folder;
  compiled(model).save(folder / "gpt.plate");
  Artifact artifact = load(folder / "gpt.plate"), decode = artifact.function("decode");
  CHECK(artifact.states().size() == 2 * kLayers);

  for (int64_t batch : {kBatch, int64_t(1), int64_t(2)}) {
    // Prompts of mixed lengths.
    std::vector<std::vector<int64_t>> texts;
    std::vector<int64_t> padded, lengths;
    const int64_t longest = 4 + 2 * batch;
    for (int64_t b = 0; b < batch; ++b) {
      lengths.push_back(longest - 2 * b);
      texts.push_back(ints(randint(0, kWords, {lengths.back()})));
      padded.insert(padded.end(), texts.back().begin(), texts.back().end());
      padded.resize(size_t(longest * (b + 1)), 0);
    }
    Tensor positions = from_vector(lengths);
    Tensor got = artifact(from_vector(padded, Shape{batch, longest}), positions);
    std::set<int64_t> distinct;
    for (int step = 0; step < 30; ++step) {
      // Each text by itself, as a whole, without a cache.
      for (int64_t b = 0; b < batch; ++b) {
        Tensor text = from_vector(texts[size_t(b)], Shape{1, int64_t(texts[size_t(b)].size())});
        CHECK(largestDifference(got(b), model.logits(text, std::nullopt)(0, -1)) < 2e-4);
      }
      Tensor next = argmax(got * 0.02 + randn({batch, kWords}), 1);
      for (int64_t b = 0; b < batch; ++b) {
        texts[size_t(b)].push_back(next(b).item<int64_t>());
        distinct.insert(texts[size_t(b)].back());
      }
      got = decode(next, positions);
      positions = positions + 1;
    }
    CHECK(distinct.size() > 10);
  }
}

TEST_CASE("one artifact serves every batch and length") {
  manual_seed(15);
  const nn::Embedding words(31, 16);
  const nn::Linear first(16, 24), second(24, 5);
  auto model = [&](const Tensor &tokens) { // [batch, length]
    Tensor x = words(tokens);
    Tensor y = scaled_dot_product_attention(x, x, x, std::nullopt, /*is_causal=*/true);
    return second(gelu(first(x + y))).mean({1});
  };
  Artifact artifact = compile(trace(model, {{i64, {Dim("batch"), Dim("length")}}}));
  auto jitted = jit(model, {.dynamic = {{0, 0}, {0, 1}}});
  std::vector<int64_t> sizes = ints(randint(1, 258, {60, 2}));
  for (size_t i = 0; i < sizes.size(); i += 2) {
    const int64_t batch = i < 6 ? int64_t(i) / 2 + 1 : std::min<int64_t>(sizes[i], 4000 / sizes[i + 1] + 1);
    Tensor tokens = randint(0, 31, {batch, sizes[i + 1]}), want = model(tokens);
    INFO(batch << ", " << sizes[i + 1]);
    CHECK(largestDifference(artifact(tokens), want) < 1e-4);
    CHECK(floats(jitted(tokens)) == floats(artifact(tokens)));
  }
  CHECK(jitted.traces() == 2); // one trace for sizes of 1, which may broadcast, and one for all others
}

TEST_CASE("a full cache is an error that leaves it as it was") {
  manual_seed(13);
  Gpt model;
  Artifact artifact = compiled(model), decode = artifact.function("decode");
  Tensor prompt = randint(0, kWords, {1, 5}), length = tensor({5});
  artifact(prompt, length).wait();
  std::vector<float> before = floats(artifact.state("blocks.1.cache.keys"));
  CHECK(contains(messageOf([&] { decode(tensor({1}), tensor({kLength})).wait(); }),
                 "is beyond the 48 tokens of the cache"));
  CHECK(contains(messageOf([&] { decode(tensor({kWords}), tensor({5})).wait(); }), "an index of take is out of range"));
  CHECK(floats(artifact.state("blocks.1.cache.keys")) == before);
  Tensor next = decode(tensor({7}), tensor({5}));
  CHECK(largestDifference(next(0), model.logits(concat({prompt, tensor({{7}})}, 1), std::nullopt)(0, -1)) < 2e-4);
}

TEST_CASE("eager and jitted generation give the artifact's bits") {
  manual_seed(14);
  Gpt model;
  Artifact artifact = compiled(model), decode = artifact.function("decode");
  Tensor prompts = randint(0, kWords, {kBatch, 6}), lengths = tensor({6, 4, 5});
  auto prefillJit = jit([&](const Tensor &p, const Tensor &l) { return model.prefill(p, l); });
  auto decodeJit = jit([&](const Tensor &t, const Tensor &p) { return model.decode(t, p); });
  auto generate = [&](auto &&first, auto &&next) {
    std::vector<std::vector<float>> all;
    Tensor logits = first(prompts, lengths), positions = lengths;
    for (int i = 0; i < 12; ++i) {
      all.push_back(floats(logits));
      logits = next(argmax(logits, 1), positions);
      positions = positions + 1;
    }
    return all;
  };
  auto compiledText = generate(artifact, decode);
  CHECK(generate(prefillJit, decodeJit) == compiledText);
  CHECK(generate([&](const Tensor &p, const Tensor &l) { return model.prefill(p, l); },
                 [&](const Tensor &t, const Tensor &p) { return model.decode(t, p); }) == compiledText);
}
