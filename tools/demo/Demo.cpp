// The demo: runs a trained LeNet on the 10,000 test images of Fashion-MNIST in four ways whose results must agree:
// eagerly, jitted, as an artifact in this process, and as the same artifact in a process without LLVM (burin-run).
#include "tools/demo/LeNet.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <zlib.h>

using namespace burin;
using Clock = std::chrono::steady_clock;

namespace {

[[noreturn]] void fail(const std::string &why) {
  std::fprintf(stderr, "demo: %s\n", why.c_str());
  std::exit(1);
}

/// Reads a gzipped IDX file and skips its header of `header` bytes.
std::vector<uint8_t> readIdx(const std::string &path, size_t header, size_t count) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file)
    fail("cannot read " + path + "; install Debian's package dataset-fashion-mnist");
  std::vector<uint8_t> bytes(header + count);
  int got = gzread(file, bytes.data(), bytes.size());
  gzclose(file);
  if (got != int(bytes.size()))
    fail(path + " is shorter than " + std::to_string(bytes.size()) + " bytes");
  bytes.erase(bytes.begin(), bytes.begin() + header);
  return bytes;
}

constexpr int64_t kImages = 10000, kBatch = 500;

struct Way {
  std::string name;
  Tensor logits;
  double latency1 = 0, latency256 = 0; // µs per image
};

/// Returns the median time of a call, in µs per image.
double latency(const std::function<Tensor(const Tensor &)> &run, const Tensor &images, int64_t batch) {
  Tensor x = images[{Slice(0, batch)}].wait();
  for (int i = 0; i < 5; ++i)
    run(x).wait();
  std::vector<double> times;
  for (int i = 0; i < (batch == 1 ? 200 : 20); ++i) {
    auto start = Clock::now();
    run(x).wait();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2] / batch;
}

Way measure(const std::string &name, const std::function<Tensor(const Tensor &)> &run, const Tensor &images) {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < kImages; i += kBatch)
    parts.push_back(run(images[{Slice(i, i + kBatch)}]));
  return {name, concat(parts).wait(), latency(run, images, 1), latency(run, images, 256)};
}

void writeBytes(const std::string &path, const std::vector<uint8_t> &bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

} // namespace

// demo WEIGHTS IMAGES LABELS BURIN-RUN OUTPUT-FOLDER
int main(int argc, char **argv) {
  if (argc != 6)
    fail("usage: burin-demo WEIGHTS IMAGES.gz LABELS.gz BURIN-RUN FOLDER");
  std::string folder = argv[5], plate = folder + "/lenet.plate";

  std::vector<uint8_t> pixels = readIdx(argv[2], 16, kImages * 28 * 28), labels = readIdx(argv[3], 8, kImages);
  Tensor images = (from_vector(pixels, Shape{kImages, 1, 28, 28}).to(f32) / 255.0f).wait();

  LeNet net;
  net.load_state_dict(load_safetensors(argv[1]));
  net.eval();

  std::vector<Way> ways;
  ways.push_back(measure("eager", [&](const Tensor &x) { return net(x); }, images));
  auto fast = jit(net);
  ways.push_back(measure("jit", [&](const Tensor &x) { return fast(x); }, images));

  Graph graph = trace(net, {TensorSpec{f32, {Dim("batch"), 1, 28, 28}}}, {"image"}, {"logits"});
  graph.save(folder + "/lenet.burin");
  compile(graph).save(plate);
  Artifact artifact = load(plate);
  ways.push_back(measure("artifact, C++", [&](const Tensor &x) { return artifact(x); }, images));

  save_npy(folder + "/images.npy", images);
  std::string command = std::string(argv[4]) + " " + plate + " --input image=@" + folder +
                        "/images.npy --output logits=@" + folder + "/logits.npy > " + folder + "/burin-run.txt 2>&1";
  if (std::system(command.c_str()) != 0)
    fail("burin-run failed, see " + folder + "/burin-run.txt");
  ways.push_back({"artifact, burin-run", load_npy(folder + "/logits.npy")});

  std::printf("%-22s %8s %14s %18s %18s\n", "", "correct", "largest", "batch 1", "batch 256");
  std::printf("%-22s %8s %14s %18s %18s\n", "", "of 10000", "difference", "µs per image", "µs per image");
  for (size_t w = 0; w < ways.size(); ++w) {
    const Way &way = ways[w];
    std::vector<uint8_t> classes = way.logits.argmax(1).to(u8).to_vector<uint8_t>();
    int correct = 0;
    for (int64_t i = 0; i < kImages; ++i)
      correct += classes[i] == labels[i];
    double difference = abs(way.logits - ways[0].logits).reduce_max().item();
    writeBytes(folder + "/classes" + std::to_string(w) + ".bin", classes);
    std::printf("%-22s %8d %14.3g", way.name.c_str(), correct, difference);
    if (way.latency1 > 0)
      std::printf(" %17.2f %17.2f", way.latency1, way.latency256);
    std::printf("\n");
  }
  std::printf("\nartifact: %ju bytes, code for %s\n", uintmax_t(std::filesystem::file_size(plate)),
              artifact.target().c_str());
  return 0;
}
