// The training demo: trains a network on Fashion-MNIST with a multithreaded loader, one compiled step, a progress bar,
// a plot of the curve, and checkpoints from which an interrupted run continues:
//   burin-train FOLDER-OF-DATA EPOCHS OUTPUT-FOLDER [lenet|resnet [IMAGES]]
#include "tools/demo/LeNet.h"
#include "tools/demo/ResNet.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

using namespace burin;

namespace {

struct Point {
  double loss, accuracy, seconds;
};

/// Reads the first `epochs` rows of the table that an interrupted run wrote.
std::vector<Point> readTable(const std::string &path, int64_t epochs) {
  std::ifstream table(path);
  std::string line;
  std::getline(table, line); // column names
  std::vector<Point> points;
  int epoch = 0;
  Point point{};
  while (int64_t(points.size()) < epochs && std::getline(table, line) &&
         std::sscanf(line.c_str(), "%d,%lf,%lf,%lf", &epoch, &point.loss, &point.accuracy, &point.seconds) == 4)
    points.push_back(point);
  return points;
}

void writeTable(const std::string &path, const std::vector<Point> &points) {
  std::ofstream table(path);
  table << "epoch,loss,accuracy,seconds\n";
  for (size_t i = 0; i < points.size(); ++i)
    table << i + 1 << "," << points[i].loss << "," << points[i].accuracy << "," << points[i].seconds << "\n";
}

/// Plots losses and accuracies over the epochs.
void writeCurve(const std::string &path, const std::vector<Point> &points) {
  constexpr double kWidth = 480, kHeight = 240, kMargin = 30;
  std::ofstream svg(path);
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"540\" height=\"300\" font-family=\"sans-serif\" "
         "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  auto line = [&](const char *color, const char *name, int row, double most, auto value) {
    svg << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << color << "\" points=\"";
    for (size_t i = 0; i < points.size(); ++i) {
      const double x = points.size() > 1 ? double(i) / double(points.size() - 1) : 0, y = value(points[i]) / most;
      svg << kMargin + x * kWidth << "," << kMargin + (1 - y) * kHeight << " ";
    }
    svg << "\"/>\n<text x=\"330\" y=\"" << 20 + 16 * row << "\" fill=\"" << color << "\">" << name << " "
        << value(points.back()) << " (top: " << most << ")</text>\n";
  };
  double most = 0;
  for (const Point &point : points)
    most = std::max(most, point.loss);
  line("#b03030", "training loss", 0, most, [](const Point &p) { return p.loss; });
  line("#3050b0", "test accuracy", 1, 1, [](const Point &p) { return p.accuracy; });
  svg << "<text x=\"230\" y=\"292\">epochs 1 to " << points.size() << "</text>\n</svg>\n";
}

/// The first `most` images of a set.
data::DatasetRef images(data::Split split, const std::string &folder, int64_t most) {
  data::DatasetRef all = data::fashion_mnist(split, folder);
  std::vector<int64_t> first(size_t(std::min(most, all->size())));
  std::iota(first.begin(), first.end(), int64_t(0));
  return data::subset(all, first);
}

/// Returns the fraction of test images that are classified correctly.
template <class Net> double test(Net &net, const Jit<Net> &infer, const std::string &folder, int64_t most) {
  data::DataLoader loader(images(data::Split::Test, folder, most), {.batch_size = 500, .workers = 1});
  net.eval();
  Mean right;
  for (const std::vector<Tensor> &batch : loader)
    right.add(accuracy(infer(batch[0]), batch[1]), int64_t(batch[1].size(0)));
  net.train();
  return right.value();
}

template <class Net> void train(const std::string &folder, int epochs, const std::string &output, int64_t most) {
  manual_seed(1);
  Net net;
  optim::Adam optimizer(net.parameters(), {.lr = 2e-3});
  data::DataLoader loader(images(data::Split::Train, folder, most),
                          {.batch_size = 128, .shuffle = true, .drop_last = true, .workers = 1});
  optim::CosineAnnealingLR schedule(optimizer, epochs * loader.size());
  Checkpoint checkpoint(output + "/checkpoints");
  if (auto saved = checkpoint.load_latest()) {
    net.load_state_dict(saved->part("model."));
    optimizer.load_state_dict(saved->part("optimizer."));
    schedule.load_state_dict(saved->part("schedule."));
    loader.load_state_dict(saved->part("loader."));
    std::printf("going on after epoch %d\n", int(loader.epoch()));
  }
  auto step = jit([&](const Tensor &images, const Tensor &labels) {
    Tensor loss = cross_entropy(net(images), labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    schedule.step();
    return loss;
  });
  auto infer = jit(net);
  const std::string table = output + "/curve.csv";
  std::vector<Point> points = readTable(table, loader.epoch());
  while (loader.epoch() < epochs) {
    const int epoch = int(loader.epoch()) + 1;
    const auto start = std::chrono::steady_clock::now();
    ProgressBar progress(loader.size(), "epoch " + std::to_string(epoch));
    Mean loss;
    for (const std::vector<Tensor> &batch : loader) {
      loss.add(step(batch[0], batch[1]));
      progress.step();
    }
    Point point{loss.value(), 0, 0};
    point.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    point.accuracy = test(net, infer, folder, most);
    std::printf("epoch %2d  loss %.4f  test accuracy %.4f  %.1f s\n", epoch, point.loss, point.accuracy, point.seconds);
    std::fflush(stdout);
    points.push_back(point);
    writeTable(table, points);
    writeCurve(output + "/curve.svg", points);
    StateDict state;
    state.add("model.", net.state_dict());
    state.add("optimizer.", optimizer.state_dict());
    state.add("schedule.", schedule.state_dict());
    state.add("loader.", loader.state_dict());
    checkpoint.save(epoch, state, 1 - point.accuracy);
  }
  checkpoint.wait();
  save_safetensors(output + "/weights.safetensors", net.state_dict());
  std::printf("traces: %zu; weights: %s/weights.safetensors, curve: %s/curve.svg\n", step.traces(), output.c_str(),
              output.c_str());
}

} // namespace

int main(int argc, char **argv) {
  const std::string network = argc > 4 ? argv[4] : "lenet";
  if (argc < 4 || argc > 6 || (network != "lenet" && network != "resnet")) {
    std::fprintf(stderr, "usage: burin-train FOLDER-OF-DATA EPOCHS OUTPUT-FOLDER [lenet|resnet [IMAGES]]\n");
    return 2;
  }
  try {
    std::filesystem::create_directories(argv[3]);
    const int epochs = std::max(1, std::atoi(argv[2]));
    const int64_t most = argc > 5 ? std::max(128, std::atoi(argv[5])) : INT64_MAX;
    if (network == "resnet")
      train<ResNet18>(argv[1], epochs, argv[3], most);
    else
      train<LeNet>(argv[1], epochs, argv[3], most);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "burin-train: %s\n", error.what());
    return 1;
  }
}
