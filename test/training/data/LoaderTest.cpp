// Streams, own collation, sums of sets, random numbers of batches.
#include "test/frontend/Check.h"
#include <atomic>
#include <mutex>
#include <thread>

using namespace burin::data;

namespace {

/// The numbers from 10·epoch on, in an order of its own.
struct Numbers : IterableDataset {
  int64_t count;
  std::shared_ptr<std::atomic<int>> inside = std::make_shared<std::atomic<int>>(0);
  int64_t failsAt = -1;
  explicit Numbers(int64_t count) : count(count) {}
  Stream open(uint64_t epoch) const override {
    return [this, epoch, at = int64_t(0)]() mutable -> std::optional<Example> {
      if (++*inside != 1)
        throw std::logic_error("two threads at once");
      std::this_thread::yield();
      --*inside;
      if (at == failsAt)
        throw std::runtime_error("the connection is lost");
      if (at >= count)
        return std::nullopt;
      return Example{tensor(int64_t(epoch) * 10 + at++).to(f32)};
    };
  }
};

std::vector<std::vector<float>> epochOf(DataLoader &loader) {
  std::vector<std::vector<float>> batches;
  for (const Example &batch : loader)
    batches.push_back(floats(batch[0]));
  return batches;
}

Example noise(Example example, Random &random) {
  example[0] = example[0] + random.uniform();
  return example;
}

/// Sequences of lengths 1, 2, 3, …
struct Sequences : Dataset {
  int64_t size() const override { return 5; }
  Example get(int64_t index) const override { return {full({index + 1}, double(index + 1))}; }
};

Example padded(std::vector<Example> examples) {
  int64_t longest = 0;
  for (const Example &example : examples)
    longest = std::max(longest, example[0].size(0).value());
  std::vector<Tensor> rows;
  std::vector<int64_t> lengths;
  for (const Example &example : examples) {
    lengths.push_back(example[0].size(0).value());
    rows.push_back(concat({example[0], zeros({longest - lengths.back()})}, 0));
  }
  return {stack(rows), from_vector(lengths)};
}

} // namespace

TEST_CASE("a stream is read in its order, by any number of workers") {
  for (int workers : {0, 1, 3}) {
    DataLoader loader(std::make_shared<Numbers>(7), {.batch_size = 3, .workers = workers});
    CHECK(epochOf(loader) == std::vector<std::vector<float>>{{0, 1, 2}, {3, 4, 5}, {6}});
    CHECK(loader.epoch() == 1);
    CHECK(epochOf(loader) == std::vector<std::vector<float>>{{10, 11, 12}, {13, 14, 15}, {16}});
    DataLoader whole(std::make_shared<Numbers>(6), {.batch_size = 3, .workers = workers});
    CHECK(epochOf(whole).size() == 2);
    DataLoader dropped(std::make_shared<Numbers>(7), {.batch_size = 3, .drop_last = true, .workers = workers});
    CHECK(epochOf(dropped).size() == 2);
    DataLoader none(std::make_shared<Numbers>(0), {.workers = workers});
    CHECK(epochOf(none).empty());
    CHECK_ERROR(loader.size(), "not known");
  }
  CHECK_ERROR(DataLoader(std::make_shared<Numbers>(1), {.shuffle = true}), "order of its own");
}

TEST_CASE("augmentation of a stream depends on positions, not on workers") {
  auto run = [](int workers) {
    DataLoader loader(std::make_shared<Numbers>(40),
                      {.batch_size = 3, .seed = 4, .workers = workers, .transform = noise, .batch_transform = noise});
    std::vector<std::vector<float>> all = epochOf(loader);
    for (const auto &batch : epochOf(loader))
      all.push_back(batch);
    return all;
  };
  auto alone = run(0);
  REQUIRE(alone.size() == 28);
  CHECK(run(1) == alone);
  CHECK(run(4) == alone);
  CHECK(alone[0][0] != alone[14][0] - 10); // each epoch has its own numbers
}

TEST_CASE("a stream goes on from its place in the middle of an epoch") {
  for (int workers : {0, 2}) {
    auto make = [&] {
      return DataLoader(std::make_shared<Numbers>(20), {.batch_size = 3, .workers = workers, .transform = noise});
    };
    DataLoader one = make(), two = make();
    epochOf(one);
    one.next();
    one.next();
    two.load_state_dict(one.state_dict());
    CHECK(epochOf(two) == epochOf(one));
    CHECK(epochOf(two) == epochOf(one));
    DataLoader far = make(); // the stream has become shorter
    far.load_state_dict({{"epoch", tensor(0)}, {"batch", tensor(50)}});
    CHECK_FALSE(far.next());
    CHECK(epochOf(far).size() == 7);
  }
}

TEST_CASE("a place in the middle of an epoch is refused by a loader of another batch size") {
  auto make = [](int64_t size) { return DataLoader(std::make_shared<Numbers>(20), {.batch_size = size}); };
  DataLoader three = make(3), four = make(4);
  four.load_state_dict(three.state_dict()); // the beginning of an epoch
  three.next();
  CHECK_ERROR(four.load_state_dict(three.state_dict()), "batch 1 of 3 examples", "batches of 4");
  make(3).load_state_dict(three.state_dict());
}

TEST_CASE("an error of a stream names the example and ends the epoch") {
  for (int workers : {0, 2}) {
    auto set = std::make_shared<Numbers>(20);
    set->failsAt = 4;
    DataLoader loader(set, {.batch_size = 3, .workers = workers});
    CHECK(loader.next());
    std::string what = messageOf([&] { loader.next(); });
    CHECK(contains(what, "example 4"));
    CHECK(contains(what, "connection is lost"));
    CHECK_FALSE(loader.next());
    CHECK(loader.epoch() == 1);
    CHECK(loader.next());
  }
}

TEST_CASE("workers of a stream stop when the loader is left") {
  for (int round = 0; round < 20; ++round) {
    DataLoader loader(std::make_shared<Numbers>(1 << 20), {.batch_size = 2, .workers = 3, .prefetch_bytes = 64});
    loader.next();
  }
}

TEST_CASE("a batch is made by a function of one's own") {
  for (int workers : {0, 2}) {
    DataLoader loader(std::make_shared<Sequences>(), {.batch_size = 2, .workers = workers, .collate = padded});
    std::vector<Example> batches;
    for (const Example &batch : loader)
      batches.push_back(batch);
    REQUIRE(batches.size() == 3);
    CHECK(str(batches[1][0].shape()) == "[2, 4]");
    CHECK(floats(batches[1][0]) == std::vector<float>{3, 3, 3, 0, 4, 4, 4, 4});
    CHECK(ints(batches[1][1]) == std::vector<int64_t>{3, 4});
    CHECK(str(batches[2][0].shape()) == "[1, 5]");
  }
  DataLoader plain(std::make_shared<Sequences>(), {.batch_size = 2});
  CHECK(contains(messageOf([&] { plain.next(); }), "`collate`"));
  DataLoader broken(std::make_shared<Sequences>(),
                    {.batch_size = 2, .workers = 1, .collate = [](std::vector<Example>) -> Example {
                       throw std::runtime_error("no such padding");
                     }});
  std::string what = messageOf([&] { broken.next(); });
  CHECK(contains(what, "examples 0, 1 cannot be made: no such padding"));
}

TEST_CASE("a set of several sets") {
  DatasetRef a = tensor_dataset({arange(3).to(f32)}), b = tensor_dataset({arange(2).to(f32) + 10}),
             c = tensor_dataset({zeros({0})});
  DatasetRef all = concat_dataset({a, c, b});
  CHECK(all->size() == 5);
  CHECK(all->get(3)[0].item() == 10);
  DataLoader loader(all, {.batch_size = 2});
  CHECK(epochOf(loader) == std::vector<std::vector<float>>{{0, 1}, {2, 10}, {11}});
  CHECK_ERROR(concat_dataset({}), "no sets");
  CHECK_ERROR(concat_dataset({a, nullptr}), "empty");
  CHECK_THROWS(all->get(5));
}

TEST_CASE("random numbers of a batch depend on its index") {
  auto run = [](int workers) {
    DataLoader loader(tensor_dataset({zeros({12, 1})}),
                      {.batch_size = 4, .workers = workers, .batch_transform = noise});
    return epochOf(loader);
  };
  auto batches = run(0);
  CHECK(run(3) == batches);
  CHECK(batches[0][0] == batches[0][3]); // one number for a batch
  CHECK(batches[0][0] != batches[1][0]);
}

TEST_CASE("an error of a set that makes whole batches names the examples") {
  struct Broken : Dataset {
    int64_t size() const override { return 30; }
    Example get(int64_t) const override { return {}; }
    Example batch(std::span<const int64_t> indices) const override {
      if (indices.front() == 10)
        throw std::runtime_error("the disk is on fire");
      return {zeros({int64_t(indices.size())})};
    }
  };
  DataLoader loader(std::make_shared<Broken>(), {.batch_size = 10, .workers = 1});
  loader.next();
  CHECK(
      contains(messageOf([&] { loader.next(); }), "10, 11, 12, 13, 14, 15, 16, 17, … cannot be made: the disk is on"));
  CHECK(loader.next());
}

TEST_CASE("normally distributed random numbers") {
  Random random(3, 1, 4);
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  CHECK(std::abs(sum / kCount) < 0.03);
  CHECK(squares / kCount == Approx(1).margin(0.04));
  CHECK(fourth / kCount == Approx(3).margin(0.3));
}
