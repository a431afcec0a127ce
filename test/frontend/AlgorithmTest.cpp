// The programs of docs/examples/algorithms, which throw unless their results have the same bits eagerly, jitted and
// from an artifact. Their results are compared with plain C++.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include <fstream>
#include <sstream>

using test::Folder;

namespace {

using Words = std::vector<int64_t>;

/// Runs a program in a folder and returns what it prints.
std::string run(const Folder &folder, const std::string &program) {
  const std::string command = "cd '" + folder.path + "' && '" + ALGORITHMS + "/algorithm-" + program + "' 2>&1";
  FILE *pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  char part[1024];
  while (size_t count = fread(part, 1, sizeof part, pipe))
    text.append(part, count);
  INFO(text);
  REQUIRE(pclose(pipe) == 0);
  return text;
}

struct Picture {
  int64_t width = 0, height = 0, white = 0;
  std::string pixels;
  explicit Picture(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::string magic;
    file >> magic >> width >> height >> white;
    REQUIRE(magic == "P5");
    file.get();
    pixels.resize(size_t(width * height));
    REQUIRE(file.read(pixels.data(), std::streamsize(pixels.size())));
  }
  int at(int64_t row, int64_t column) const { return uint8_t(pixels[size_t(row * width + column)]); }
};

/// The `width` most likely sentences after word 1, with their scores.
std::vector<std::pair<float, Words>> beamSearch(const std::vector<float> &table, size_t words, size_t width,
                                                size_t length) {
  using Beam = std::pair<float, Words>;
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

/// One LSTM cell of one row: replaces h and c.
void step(const std::vector<double> &x, const float *weight, std::vector<double> &h, std::vector<double> &c) {
  const size_t size = x.size();
  std::vector<double> gates(4 * size), in(x);
  in.insert(in.end(), h.begin(), h.end());
  for (size_t k = 0; k < in.size(); ++k)
    for (size_t j = 0; j < gates.size(); ++j)
      gates[j] += in[k] * double(weight[k * gates.size() + j]);
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (size_t j = 0; j < size; ++j) {
    c[j] = sigmoid(gates[size + j]) * c[j] + sigmoid(gates[j]) * std::tanh(gates[2 * size + j]);
    h[j] = sigmoid(gates[3 * size + j]) * std::tanh(c[j]);
  }
}

/// The distance from a point to a unit sphere and a floor below it.
float distanceTo(float x, float y, float z) { return std::min(std::sqrt(x * x + y * y + z * z) - 1, y + 1); }

/// The brightness that the camera of ray_march.cpp sees in direction (u, v).
double brightness(float u, float v, const float (&light)[3]) {
  const float norm = 1 / std::sqrt(u * u + v * v + 2.25f), dx = u * norm, dy = v * norm, dz = 1.5f * norm;
  float t = 0;
  for (int n = 0; n < 200 && t < 20; ++n)
    t += distanceTo(dx * t, dy * t, dz * t - 3);
  if (t >= 20)
    return 0;
  const float x = dx * t, y = dy * t, z = dz * t - 3, length = std::sqrt(x * x + y * y + z * z);
  const bool isSphere = length - 1 < y + 1;
  const double lit = isSphere ? (x * light[0] + y * light[1] + z * light[2]) / length : double(light[1]);
  return std::clamp(lit, 0.0, 1.0);
}

} // namespace

TEST_CASE("beam search with while_loop") {
  Folder folder;
  const std::string text = run(folder, "beam_search");
  CHECK(lines(text) == 4); // the last one is empty
  Tensor tables = load_npy(folder / "tables.npy"), found = load_npy(folder / "sentences.npy"),
         scores = load_npy(folder / "scores.npy");
  const int64_t width = found.shape()[1].value(), length = found.shape()[2].value();
  REQUIRE(found.shape()[0] == Dim(3));
  for (int64_t round = 0; round < 3; ++round) {
    auto want = beamSearch(floats(tables(round)), size_t(tables.shape()[1].value()), size_t(width), size_t(length));
    for (int64_t b = 0; b < width; ++b) {
      CHECK(ints(found(round, b)) == want[size_t(b)].second);
      CHECK(scores(round, b).item() == Approx(want[size_t(b)].first).epsilon(1e-5));
    }
  }
}

TEST_CASE("an LSTM language model with a scan in a scan") {
  Folder folder;
  CHECK(run(folder, "lstm") == "f32[1, 2, 20]\nf32[2, 2, 20]\nf32[19, 2, 20]\n");
  const StateDict saved = load_safetensors(folder / "lstm.safetensors");
  const Tensor weights = saved.at("weights"), tokens = saved.at("tokens");
  const std::vector<float> embedding = floats(saved.at("embedding")), out = floats(saved.at("out")),
                           weight = floats(weights), logits = floats(saved.at("logits"));
  const size_t layers = size_t(weights.shape()[0].value()), size = size_t(saved.at("out").shape()[0].value()),
               words = size_t(saved.at("out").shape()[1].value()), length = size_t(tokens.shape()[0].value()),
               batch = size_t(tokens.shape()[1].value());
  const Words text = ints(tokens);
  double worst = 0;
  for (size_t b = 0; b < batch; ++b) {
    std::vector<std::vector<double>> h(layers, std::vector<double>(size)), c = h;
    for (size_t t = 0; t < length; ++t) {
      const float *row = embedding.data() + size_t(text[t * batch + b]) * size;
      std::vector<double> x(row, row + size);
      for (size_t l = 0; l < layers; ++l) {
        step(x, weight.data() + l * 8 * size * size, h[l], c[l]);
        x = h[l];
      }
      for (size_t w = 0; w < words; ++w) {
        double sum = 0;
        for (size_t j = 0; j < size; ++j)
          sum += x[j] * double(out[j * words + w]);
        worst = std::max(worst, std::fabs(sum - double(logits[(t * batch + b) * words + w])));
      }
    }
  }
  CHECK(worst < 1e-5);
}

TEST_CASE("Newton iterations under nested cond") {
  Folder folder;
  std::istringstream found(run(folder, "newton"));
  double x, root;
  int64_t turns;
  int count = 0;
  for (; found >> x >> root >> turns; ++count) {
    CHECK(root == Approx(std::cbrt(x)).epsilon(1e-5));
    CHECK((turns == 0) == (x == 0));
  }
  CHECK(count == 6);
}

TEST_CASE("a Mandelbrot picture") {
  Folder folder;
  run(folder, "mandelbrot");
  const Picture picture(folder / "mandelbrot.pgm");
  REQUIRE(picture.width == 192);
  size_t differ = 0, inside = 0; // points at the edge of the set may differ
  for (int64_t row = 0; row < picture.height; ++row)
    for (int64_t column = 0; column < picture.width; ++column) {
      const double re = 3.0 * double(column) / double(picture.width) - 2,
                   im = 2.0 * double(row) / double(picture.height) - 1;
      double x = 0, y = 0;
      int n = 0;
      for (; n < picture.white && x * x + y * y <= 4; ++n) {
        const double next = x * x - y * y + re;
        y = 2 * x * y + im;
        x = next;
      }
      differ += n != picture.at(row, column);
      inside += n == picture.white;
    }
  CHECK(differ < picture.pixels.size() / 50);
  CHECK(inside > 1000);
}

TEST_CASE("a ray-marched picture") {
  Folder folder;
  run(folder, "ray_march");
  const Picture picture(folder / "ray_march.pgm");
  REQUIRE(picture.width == 128);
  const float light[3] = {0, 0.6f, -0.8f};
  size_t differ = 0, bright = 0; // at the outlines of the sphere, and where it meets the floor
  for (int64_t row = 0; row < picture.height; ++row)
    for (int64_t column = 0; column < picture.width; ++column) {
      const float u = 2.0f * float(column) / float(picture.width) - 1,
                  v = 1 - 2.0f * float(row) / float(picture.height);
      const double want = brightness(u, v, light);
      differ += std::fabs(want - picture.at(row, column) / 255.0) > 0.02;
      bright += want > 0.5;
    }
  CHECK(differ < picture.pixels.size() / 20);
  CHECK(bright > 1000);
}

TEST_CASE("Metropolis sampling with state") {
  Folder folder;
  run(folder, "metropolis");
  double sum = 0, squares = 0;
  const std::vector<float> samples = floats(load_npy(folder / "samples.npy"));
  for (float x : samples)
    sum += x, squares += double(x) * x;
  const double n = double(samples.size()), mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
  CHECK(n == 16 * 64);
  CHECK(mean == Approx(1).margin(0.08));
  CHECK(deviation == Approx(0.5).margin(0.06));
}
