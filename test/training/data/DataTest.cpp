// Data sets, the loader, checkpoints and metrics.
#include "test/frontend/Check.h"
#include "test/training/data/Folder.h"
#include <atomic>
#include <cmath>
#include <csignal>
#include <mutex>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <zlib.h>

namespace fs = std::filesystem;
using namespace burin::data;

namespace {

DatasetRef numbers(int64_t n) { return tensor_dataset({arange(n).to(f32).reshape({n, 1}), arange(n)}); }

/// Returns the classes of all batches of an epoch.
std::vector<std::vector<int64_t>> epochOf(DataLoader &loader) {
  std::vector<std::vector<int64_t>> batches;
  for (const Example &batch : loader)
    batches.push_back(ints(batch[1]));
  return batches;
}

/// A dataset that fails for one index.
struct Broken : Dataset {
  int64_t size() const override { return 10; }
  Example get(int64_t index) const override {
    if (index == 7)
      throw std::runtime_error("the disk is on fire");
    return {zeros({2})};
  }
};

void writeIdx(const std::string &path, std::vector<uint8_t> header, const std::vector<uint8_t> &elements,
              bool isPacked = false) {
  header.insert(header.end(), elements.begin(), elements.end());
  if (isPacked) {
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, header.data(), unsigned(header.size()));
    gzclose(file);
  } else {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(header.data()), int64_t(header.size()));
  }
}

} // namespace

TEST_CASE("a loader makes batches in order, epoch by epoch") {
  DataLoader loader(numbers(7), {.batch_size = 3});
  CHECK(loader.size() == 3);
  CHECK(epochOf(loader) == std::vector<std::vector<int64_t>>{{0, 1, 2}, {3, 4, 5}, {6}});
  CHECK(loader.epoch() == 1);
  CHECK(epochOf(loader).size() == 3);
  DataLoader even(numbers(7), {.batch_size = 3, .drop_last = true});
  CHECK(epochOf(even).size() == 2);
  Example batch = *even.next();
  CHECK(str(batch[0].spec()) == "f32[3, 1]");
  CHECK(DataLoader(numbers(0)).size() == 0);
}

TEST_CASE("order and augmentation do not depend on the number of workers") {
  auto run = [](int workers, uint64_t seed) {
    Transform noise = [](Example example, Random &random) {
      example[0] = example[0] + random.uniform();
      return example;
    };
    DataLoader loader(numbers(50), {.batch_size = 4,
                                    .shuffle = true,
                                    .seed = seed,
                                    .workers = workers,
                                    .prefetch_bytes = workers == 3 ? size_t(1) : size_t(1) << 20,
                                    .transform = noise});
    std::vector<float> all;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const Example &batch : loader) {
        std::vector<float> values = floats(batch[0]);
        all.insert(all.end(), values.begin(), values.end());
      }
    return all;
  };
  std::vector<float> alone = run(0, 5);
  REQUIRE(alone.size() == 100);
  CHECK(run(1, 5) == alone);
  CHECK(run(3, 5) == alone);
  CHECK(run(0, 6) != alone);
  std::set<int> first, second; // each example once per epoch, in different orders
  for (int i = 0; i < 50; ++i) {
    first.insert(int(alone[size_t(i)]));
    second.insert(int(alone[size_t(i) + 50]));
  }
  CHECK(first.size() == 50);
  CHECK(second.size() == 50);
  CHECK(std::vector(alone.begin(), alone.begin() + 50) != std::vector(alone.begin() + 50, alone.end()));
}

TEST_CASE("a loader goes on from its place in the middle of an epoch") {
  auto make = [](int workers) {
    return DataLoader(numbers(20), {.batch_size = 3, .shuffle = true, .seed = 1, .workers = workers});
  };
  DataLoader one = make(0), two = make(2);
  epochOf(one);
  for (int i = 0; i < 2; ++i)
    one.next();
  two.load_state_dict(one.state_dict());
  CHECK(two.epoch() == 1);
  CHECK(epochOf(two) == epochOf(one));
  CHECK(epochOf(two) == epochOf(one));
}

TEST_CASE("what a loader reads ahead is bounded") {
  struct Counting : Dataset {
    std::atomic<int> *made;
    int64_t size() const override { return 100; }
    Example get(int64_t) const override {
      ++*made;
      return {zeros({256})};
    }
  };
  std::atomic<int> made = 0;
  auto counting = std::make_shared<Counting>();
  counting->made = &made;
  DataLoader loader(counting, {.batch_size = 1, .workers = 2, .prefetch_bytes = 4096}); // room for four batches
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // One delivered, four ready, and two may have been started before the last of those was finished.
  CHECK(made <= 1 + 4 + 2);
}

TEST_CASE("an error while loading names the example") {
  for (int workers : {0, 2}) {
    DataLoader loader(std::make_shared<Broken>(), {.batch_size = 4, .workers = workers});
    loader.next();
    std::string what = messageOf([&] { loader.next(); });
    CHECK(contains(what, "example 7"));
    CHECK(contains(what, "on fire"));
    CHECK(loader.next()); // the next batch is unaffected
    CHECK_FALSE(loader.next());
  }
  CHECK_ERROR(DataLoader(numbers(3), {.batch_size = 0}), "batch size");
  CHECK_ERROR(tensor_dataset({ones({2}), ones({3})}), "f32[2]", "f32[3]");
  CHECK_ERROR(random_split(numbers(5), {2, 2}, 0), "5 examples");
  DataLoader wild(numbers(3), {.sampler = [](uint64_t) { return std::vector<int64_t>{5}; }});
  CHECK_ERROR(wild.next(), "index 5");
}

TEST_CASE("splits and samplers") {
  auto parts = random_split(numbers(10), {7, 3}, 4);
  std::set<int64_t> seen;
  for (const DatasetRef &part : parts)
    for (int64_t i = 0; i < part->size(); ++i)
      seen.insert(part->get(i)[1].item<int64_t>());
  CHECK(parts[0]->size() == 7);
  CHECK(seen.size() == 10);
  DataLoader loader(numbers(3), {.batch_size = 1000, .sampler = weighted_sampler({0, 3, 1}, 1000, 2)});
  std::vector<int64_t> drawn = epochOf(loader)[0];
  CHECK(std::count(drawn.begin(), drawn.end(), 0) == 0);
  CHECK(std::count(drawn.begin(), drawn.end(), 1) == Approx(750).margin(60));
}

TEST_CASE("transforms of images") {
  Random random(1, 2, 3);
  Tensor image = arange(8).to(f32).reshape({2, 2, 2});
  CHECK(floats(normalize({1, 0}, {2, 1})({image}, random)[0]) == std::vector<float>{-0.5, 0, 0.5, 1, 4, 5, 6, 7});
  CHECK(floats(random_horizontal_flip(1)({image}, random)[0]) == std::vector<float>{1, 0, 3, 2, 5, 4, 7, 6});
  CHECK(floats(random_horizontal_flip(0)({image}, random)[0]) == floats(image));
  CHECK(floats(random_crop(2)({image}, random)[0]) == floats(image));
  std::set<std::vector<float>> crops;
  for (int i = 0; i < 100; ++i)
    crops.insert(floats(random_crop(3, {.padding = 1})({ones({3, 3})}, random)[0]));
  CHECK(crops.size() == 9);
}

TEST_CASE("IDX files") {
  Folder folder;
  writeIdx(folder.file("a"), {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(ints(load_idx(folder.file("a"))) == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(str(load_idx(folder.file("a")).spec()) == "u8[2, 3]");
  writeIdx(folder.file("b.gz"), {0, 0, 0x0c, 1, 0, 0, 0, 1}, {0, 0, 1, 2}, true);
  CHECK(load_idx(folder.file("b.gz")).item<int>() == 258);
  writeIdx(folder.file("short"), {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3}, {1, 2});
  CHECK_ERROR(load_idx(folder.file("short")), "short", "u8[2, 3]", "2 bytes");
  writeIdx(folder.file("huge"), {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, {1, 2});
  CHECK_ERROR(load_idx(folder.file("huge")), "huge");
  writeIdx(folder.file("other"), {1, 2, 3, 4}, {});
  CHECK_ERROR(load_idx(folder.file("other")), "no IDX file");
  CHECK_ERROR(load_idx(folder.file("none")), "none");
  CHECK_ERROR(mnist(Split::Train, folder.path), "train-images", "dataset-fashion-mnist");
  writeIdx(folder.file("t10k-images-idx3-ubyte"), {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2}, {0, 255, 51, 102});
  writeIdx(folder.file("t10k-labels-idx1-ubyte.gz"), {0, 0, 8, 1, 0, 0, 0, 2}, {3, 9}, true);
  DatasetRef digits = mnist(Split::Test, folder.path);
  CHECK(digits->size() == 2);
  CHECK(str(digits->get(1)[0].shape()) == "[1, 1, 2]");
  CHECK(digits->get(1)[0].max().item() == Approx(0.4));
  CHECK(digits->get(1)[1].item<int>() == 9);
}

TEST_CASE("the binary form of CIFAR-10") {
  Folder folder;
  std::vector<uint8_t> bytes(2 * 3073, 255);
  bytes[0] = 4;
  bytes[3073] = 9;
  writeIdx(folder.file("test_batch.bin"), {}, bytes);
  DatasetRef images = cifar10(Split::Test, folder.path);
  CHECK(images->size() == 2);
  CHECK(str(images->get(0)[0].spec()) == "f32[3, 32, 32]");
  CHECK(images->get(0)[1].item<int>() == 4);
  CHECK_ERROR(cifar10(Split::Train, folder.path), "data_batch_1.bin");
  bytes[0] = 12;
  writeIdx(folder.file("test_batch.bin"), {}, bytes);
  CHECK_ERROR(cifar10(Split::Test, folder.path), "class 12");
}

TEST_CASE("a training goes on from its checkpoint bit for bit") {
  Folder folder;
  struct Run {
    nn::Linear net{4, 3};
    optim::AdamW optimizer{net.parameters(), {.lr = 0.05}};
    optim::CosineAnnealingLR schedule{optimizer, 20};
    DataLoader loader;
    Run() : loader(tensor_dataset({uniform({20, 4}, -1, 1), arange(20) % 3}), {.batch_size = 3, .shuffle = true}) {}
    void steps(int n) {
      for (int i = 0; i < n; ++i) {
        auto batch = loader.next();
        if (!batch)
          batch = loader.next();
        optimizer.step(optimizer.gradients(cross_entropy(net((*batch)[0]), (*batch)[1])));
        schedule.step();
      }
    }
    StateDict state() {
      StateDict all;
      all.add("model.", net.state_dict());
      all.add("optimizer.", optimizer.state_dict());
      all.add("schedule.", schedule.state_dict());
      all.add("loader.", loader.state_dict());
      return all;
    }
  };
  manual_seed(1);
  Run whole;
  whole.steps(12);
  {
    manual_seed(1);
    Run first;
    first.steps(5);
    Checkpoint(folder.path).save(5, first.state());
  }
  manual_seed(1); // for the data
  Run second;
  StateDict saved = *Checkpoint(folder.path).load_latest();
  second.net.load_state_dict(saved.part("model."));
  second.optimizer.load_state_dict(saved.part("optimizer."));
  second.schedule.load_state_dict(saved.part("schedule."));
  second.loader.load_state_dict(saved.part("loader."));
  second.steps(7);
  CHECK(largestDifference(whole.net.weight, second.net.weight) == 0);
  CHECK(largestDifference(whole.net.bias, second.net.bias) == 0);
}

TEST_CASE("the last checkpoints and the best one are kept") {
  Folder folder;
  Checkpoint checkpoint(folder.path / "run", {.keep_last = 2});
  CHECK_FALSE(checkpoint.load_latest());
  CHECK_FALSE(checkpoint.load_best());
  const double metrics[] = {3, 1, 2, 4, 5};
  for (int64_t step = 0; step < 5; ++step)
    checkpoint.save(step * 10, {{"w", full({2}, double(step))}}, metrics[step]);
  checkpoint.wait();
  CHECK(checkpoint.steps() == std::vector<int64_t>{10, 30, 40});
  int64_t step = 0;
  CHECK(checkpoint.load_latest(&step)->at("w")[0].item() == 4);
  CHECK(step == 40);
  CHECK(checkpoint.load_best(&step)->at("w")[0].item() == 1);
  CHECK(step == 10);
  fs::remove_all(folder.path / "run");
  checkpoint.save(50, {{"w", ones({2})}});
  CHECK_ERROR(checkpoint.wait(), "run");
  CHECK_ERROR(Checkpoint("/proc/nowhere"), "/proc/nowhere");
}

static size_t filesIn(const fs::path &folder) {
  return size_t(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_CASE("a save that cannot be completed leaves the checkpoints as they were") {
  Folder folder;
  Checkpoint checkpoint(folder.path);
  checkpoint.save(1, {{"w", ones({2000})}});
  checkpoint.wait();
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto *handler = std::signal(SIGXFSZ, SIG_IGN); // a write beyond the limit is cut short, and the next one fails
  for (rlim_t bytes : {0, 1, 100, 4096, 8000}) {
    const rlimit limit{bytes, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    checkpoint.save(2, {{"w", zeros({2000})}});
    std::string message;
    try {
      checkpoint.wait();
    } catch (const Error &error) {
      message = error.what();
    }
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(contains(message, "step-2"));
    CHECK(filesIn(folder.path) == 1);
    CHECK(checkpoint.load_latest()->at("w").sum().item() == 2000);
  }
  std::signal(SIGXFSZ, handler);
  checkpoint.save(2, {{"w", zeros({2000})}});
  CHECK(checkpoint.load_latest()->at("w").sum().item() == 0);
}

/// The next test starts this case as a separate process.
TEST_CASE("saves checkpoints until it is killed", "[.]") {
  const char *folder = std::getenv("BURIN_TEST_CHECKPOINTS");
  REQUIRE(folder);
  Checkpoint checkpoint(folder, {.keep_last = 2});
  int64_t step = 0;
  if (auto saved = checkpoint.load_latest(&step))
    REQUIRE(saved->at("w").sum().item() == double(step) * 100000); // a complete file, of this step
  for (++step;; ++step)
    checkpoint.save(step, {{"w", full({100000}, double(step), f64)}});
}

TEST_CASE("a process killed while it saves leaves complete checkpoints, and the next one goes on") {
  Folder folder;
  setenv("BURIN_TEST_CHECKPOINTS", folder.path.c_str(), 1);
  int64_t last = 0;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      execl("/proc/self/exe", "data-tests", "saves checkpoints until it is killed", nullptr);
      _exit(1);
    }
    const auto start = std::chrono::steady_clock::now();
    auto newest = [&] {
      int64_t found = 0;
      for (const auto &file : fs::directory_iterator(folder.path))
        if (file.path().extension() == ".safetensors")
          found = std::max<int64_t>(found, std::stoll(file.path().stem().string().substr(5)));
      return found;
    };
    while (newest() < last + 3 && std::chrono::steady_clock::now() - start < std::chrono::seconds(30))
      usleep(500);
    usleep(useconds_t(round * 137)); // another moment of a save in each round
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status)); // killed, not failed
    CHECK(newest() >= last + 3);
    last = newest();
    for (const auto &file : fs::directory_iterator(folder.path))
      if (file.path().extension() == ".safetensors") {
        const double step = double(std::stoll(file.path().stem().string().substr(5)));
        CHECK(largestDifference(load_safetensors(file.path()).at("w"), full({100000}, step, f64)) == 0);
      }
  }
  std::ofstream(folder.path / "step-9.safetensors.tmp1") << "half";
  Checkpoint checkpoint(folder.path, {.keep_last = 2});
  CHECK(filesIn(folder.path) == checkpoint.steps().size());
}

TEST_CASE("metrics") {
  Tensor scores = tensor({{0.1, 0.7, 0.2}, {0.5, 0.3, 0.2}, {0.2, 0.3, 0.5}, {0.6, 0.1, 0.3}}),
         target = tensor({1, 1, 2, 2});
  CHECK(accuracy(scores, target).item() == 0.5);
  CHECK(accuracy(scores, target, 2).item() == 1);
  Tensor confusion = confusion_matrix(scores.argmax(1), target, 3);
  CHECK(ints(confusion) == std::vector<int64_t>{0, 0, 0, 1, 1, 0, 1, 0, 1});
  ClassScores s = class_scores(confusion);
  CHECK(values<double>(s.precision) == std::vector<double>{0, 1, 1});
  CHECK(values<double>(s.recall) == std::vector<double>{0, 0.5, 0.5});
  CHECK(s.f1[1].item() == Approx(2.0 / 3));
  CHECK_ERROR(accuracy(scores, scores), "scores [N, C]");
  Mean mean;
  CHECK(std::isnan(mean.value()));
  mean.add(tensor(1.0f), 3);
  mean.add(tensor(5.0f));
  CHECK(mean.value() == 2);
}

TEST_CASE("a progress bar is a line") {
  ProgressBar bar(4, "epoch 1");
  bar.step();
  bar.step("loss 0.5");
  CHECK(bar.line(2) == "epoch 1 ━━━━━━━━━━━━──────────── 2/4  2 s, 1.0/s  loss 0.5");
}
