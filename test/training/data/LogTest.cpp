// Curves, tables, TensorBoard's files, perplexity.
#include "test/frontend/Check.h"
#include "test/training/data/Folder.h"
#include <cmath>
#include <limits>
#include <sys/resource.h>

namespace fs = std::filesystem;

TEST_CASE("curves are drawn between round numbers") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::string svg = plot_svg({{"loss", {2.3, 0.9, 0.4}}, {"test <loss>", {2, 1, nan, 1.5, nan, 1.2, 1.1}}},
                             {.title = "LeNet & more", .x_label = "epoch", .width = 680, .height = 480});
  // The area is 600 by 400 pixels from (64, 34); x goes from 1 to 7, y from 0 to 2.5 as the ticks are 0.5 apart.
  CHECK(contains(svg, "points=\"64.00,66.00 164.00,290.00 264.00,370.00 \""));
  CHECK(contains(svg, "points=\"64.00,114.00 164.00,274.00 \""));
  CHECK(contains(svg, "<circle cx=\"364.00\" cy=\"194.00\"")); // alone between two gaps
  CHECK(contains(svg, ">2.5</text>"));
  CHECK(contains(svg, "test &lt;loss&gt; 1.1<"));
  CHECK(contains(svg, "LeNet &amp; more"));
  CHECK(contains(svg, "width=\"680\" height=\"480\""));
  std::string log = plot_svg({{"rate", {0.1, 0.001, 0, -1}, {1, 10, 100, 1000}}},
                             {.log_x = true, .log_y = true, .width = 680, .height = 480});
  CHECK(contains(log, "points=\"64.00,34.00 664.00,434.00 \""));
  CHECK(contains(plot_svg({}), "</svg>"));
  CHECK(contains(plot_svg({{"one", {3}}}), "<circle"));
  CHECK_ERROR(plot_svg({{"c", {1, 2}, {1}}}), "1 x and 2 y");
  CHECK_ERROR(plot_svg({}, {.width = 10}), "160 by 120");
}

TEST_CASE("a plot replaces its file") {
  Folder folder;
  plot(folder.file("a.svg"), {{"loss", {1}}});
  plot(folder.file("a.svg"), {{"loss", {1, 2}}});
  CHECK(contains(folder.read("a.svg"), "<polyline"));
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
  CHECK_ERROR(plot(folder.file("none/a.svg"), {}), "none/a.svg");
}

TEST_CASE("a log is a table") {
  Folder folder;
  const std::string path = folder.file("log.csv");
  {
    MetricLog log(path);
    log.add(1, {{"loss", 0.1}, {"accuracy", 0.5}});
    log.add(2, {{"accuracy", 0.75}, {"loss", 1.0 / 3}});
    log.add(5, {{"loss", -INFINITY}});
    CHECK(folder.read("log.csv") ==
          "step,loss,accuracy\n1,0.1,0.5\n2,0.3333333333333333,0.75\n5,-inf,\n"); // before it is closed
    Curve loss = log.curve("loss");
    CHECK(loss.x == std::vector<double>{1, 2, 5});
    CHECK(loss.y == std::vector<double>{0.1, 1.0 / 3, -INFINITY});
    CHECK(log.curve("accuracy").x == std::vector<double>{1, 2});
    CHECK_ERROR(log.add(5, {}), "step 5 comes after step 5");
    CHECK_ERROR(log.add(6, {{"new", 1}}), "no column \"new\"");
    CHECK_ERROR(log.add(6, {{"a,b", 1}}), "a,b");
  }
  std::ofstream(path, std::ios::app) << "6,0.2"; // killed while it wrote
  {
    MetricLog log(path, 2);
    CHECK(folder.read("log.csv") == "step,loss,accuracy\n1,0.1,0.5\n2,0.3333333333333333,0.75\n");
    log.add(3, {{"loss", 0.25}, {"accuracy", 1}});
    CHECK(log.curve("loss").y == std::vector<double>{0.1, 1.0 / 3, 0.25});
  }
  {
    MetricLog log(path, 0);
    log.add(1, {{"other", 7}});
  }
  CHECK(folder.read("log.csv") == "step,other\n1,7\n");
  MetricLog fresh(path);
  CHECK(folder.read("log.csv").empty());
  CHECK_ERROR(MetricLog(folder.write("bad.csv", "step,x\n1,2\nthis is text\n"), 9), "bad.csv", "line 3");
  CHECK_ERROR(MetricLog(folder.write("other.csv", "x,y\n"), 9), "header");
  CHECK_ERROR(MetricLog("/proc/nowhere/log.csv"), "/proc/nowhere");
  MetricLog(folder.file("new/log.csv")).add(1, {{"x", 1}});
  CHECK(folder.read("new/log.csv") == "step,x\n1,1\n");
}

TEST_CASE("a log is JSON lines") {
  Folder folder;
  const std::string path = folder.file("log.jsonl");
  {
    MetricLog log(path);
    log.add(1, {{"loss", 0.1}, {"a name", 2}});
  }
  std::ofstream(path, std::ios::app) << "{\"step\":2,\"lo";
  MetricLog log(path, 7);
  log.add(8, {{"loss", NAN}, {"extra", 1}});
  CHECK(folder.read("log.jsonl") ==
        "{\"step\":1,\"loss\":0.1,\"a name\":2.0}\n{\"step\":8,\"loss\":null,\"extra\":1.0}\n");
  Curve loss = log.curve("loss");
  CHECK((loss.y.size() == 2 && loss.y[0] == 0.1 && std::isnan(loss.y[1])));
  CHECK_ERROR(MetricLog(folder.write("bad.jsonl", "{\"loss\":1}\n"), 9), "bad.jsonl", "line 1");
}
TEST_CASE("perplexity") {
  Tensor scores = tensor({{0.0, 1.0, -1.0}, {2.0, 0.0, 0.5}, {0.3, 0.1, 0.2}, {5.0, 5.0, 5.0}}),
         target = tensor({1, 2, 0, -100});
  double nll = 0; // by hand
  const double rows[3][3] = {{0, 1, -1}, {2, 0, 0.5}, {0.3, 0.1, 0.2}};
  const int classes[] = {1, 2, 0};
  for (int i = 0; i < 3; ++i) {
    double sum = 0;
    for (double score : rows[i])
      sum += std::exp(score);
    nll += std::log(sum) - rows[i][classes[i]];
  }
  Perplexity whole, parts;
  CHECK(std::isnan(whole.value()));
  whole.add(scores, target);
  CHECK(whole.value() == Approx(std::exp(nll / 3)));
  parts.add(scores[{Slice(0, 1)}], target[{Slice(0, 1)}]);
  parts.add(scores[{Slice(1, 4)}].reshape({1, 3, 3}), target[{Slice(1, 4)}].reshape({1, 3}));
  CHECK(parts.value() == Approx(std::exp(nll / 3)));
  Perplexity uniform;
  uniform.add(zeros({2, 5, 8}, bf16), zeros({2, 5}, i64), /*ignore_index=*/3);
  CHECK(uniform.value() == Approx(8));
  CHECK_ERROR(whole.add(scores, zeros({3}, i64)), "scores [N, C]", "i64[3]");
  CHECK_ERROR(whole.add(scores, zeros({4})), "f32[4]");
}

TEST_CASE("event files of TensorBoard: errors") {
  Folder folder;
  SummaryWriter writer(folder.file("run"));
  CHECK(contains(writer.path(), "run/events.out.tfevents."));
  SummaryWriter second(folder.file("run")); // in the same second
  CHECK(second.path() != writer.path());
  CHECK_ERROR(writer.add_histogram("h", zeros({0}), 1), "f32[0]", "finite");
  CHECK_ERROR(writer.add_histogram("h", tensor({1.0, NAN}), 1), "finite");
  CHECK_ERROR(writer.add_image("i", zeros({2, 3, 3}), 1), "f32[2, 3, 3]");
  CHECK_ERROR(SummaryWriter("/proc/nowhere"), "/proc/nowhere");
}

/// Writes the file that events.py reads: `data-tests "writes event files"` with the folder in BURIN_TEST_EVENTS.
TEST_CASE("writes event files", "[.]") {
  const char *folder = std::getenv("BURIN_TEST_EVENTS");
  REQUIRE(folder);
  SummaryWriter writer(folder);
  for (int step = 0; step < 5; ++step)
    writer.add_scalar("loss/train", 1.0 / (step + 1), step * 10);
  writer.add_scalar("far", -1e30, int64_t(1) << 40);
  writer.add_histogram("weights", arange(101).to(f32) / 10 - 2, 3, 5);
  writer.add_histogram("equal", full({7}, 2.5), 4);
  writer.add_image("picture", tensor({{{0.0, 1.0, 0.5}, {2.0, -1.0, 0.2}}}).to(f32), 5);
  writer.add_image("colors", arange(3 * 4 * 5).reshape({3, 4, 5}).to(u8), 6);
  writer.add_text("note", "trained on ✓ <data>", 7);
}
