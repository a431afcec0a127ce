// Readers of images, tables and text.
#include "test/frontend/Check.h"
#include "test/training/data/Folder.h"
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using namespace burin::data;
namespace fs = std::filesystem;

namespace {

std::string image(const std::string &name) { return std::string(IMAGE_FILES) + "/" + name; }
std::string bytesOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Whether the build has readers of both kinds; they are optional.
bool hasReaders() {
  if (!HAS_IMAGES)
    WARN("built without libpng or libjpeg");
  return HAS_IMAGES;
}

} // namespace

// ---- images

TEST_CASE("images of all kinds have the pixels that Pillow reads") {
  if (!hasReaders())
    return;
  const StateDict stored = load_safetensors(image("images.safetensors"));
  for (const auto &entry : fs::directory_iterator(IMAGE_FILES)) {
    const std::string name = entry.path().filename();
    if (name == "images.safetensors")
      continue;
    INFO(name);
    // libjpeg-turbo's versions may round differently; PNG has no loss.
    const int tolerance = name.ends_with(".jpg") ? 2 : 0;
    for (bool isGray : {false, true}) {
      Tensor got = load_image(entry.path(), isGray ? ImageMode::Gray : ImageMode::Rgb);
      Tensor want = stored.at(name + (isGray ? " gray" : ""));
      REQUIRE(got.spec() == want.spec());
      CHECK((got.to(i32) - want.to(i32)).abs().max().item<int>() <= tolerance);
    }
  }
}

TEST_CASE("damaged images are refused by name") {
  if (!hasReaders())
    return;
  Folder folder;
  for (const char *name : {"rgb.png", "palette.png", "color.jpg", "progressive.jpg", "inks.jpg"}) {
    const std::string whole = bytesOf(image(name));
    for (size_t length : {size_t(0), size_t(2), size_t(9), size_t(30), whole.size() / 2, whole.size() - 20}) {
      const std::string path = folder.write("cut", whole.substr(0, length));
      INFO(name << ", the first " << length << " bytes");
      CHECK_ERROR(load_image(path), "cut", "cannot read");
    }
  }
  std::string changed = bytesOf(image("rgb.png"));
  changed[70] ^= 1; // of the compressed pixels
  CHECK_ERROR(load_image(folder.write("changed", changed)), "changed");
  std::string huge = bytesOf(image("rgb.png"));
  std::memset(huge.data() + 16, 0x7f, 8); // the sizes, whose checksum is wrong then, too
  CHECK_ERROR(load_image(folder.write("huge", huge)), "huge");
  CHECK_ERROR(load_image(folder.write("text.png", "no image")), "text.png", "neither a PNG nor a JPEG");
  CHECK_ERROR(load_image(folder.file("none")), "none");
}

TEST_CASE("any damage of an image is an error or other pixels, never a crash") {
  if (!hasReaders())
    return;
  Folder folder;
  Random random(1, 2, 3);
  for (const char *name : {"rgba.png", "color.jpg", "progressive.jpg"}) {
    const std::string whole = bytesOf(image(name));
    for (int i = 0; i < 150; ++i) {
      std::string changed = whole;
      for (int j = 0; j < 3; ++j)
        changed[size_t(random.integer(0, int64_t(whole.size())))] = char(random.integer(0, 256));
      const std::string path = folder.write("changed", changed);
      try {
        Tensor pixels = load_image(path);
        CHECK(pixels.rank() == 3);
      } catch (const Error &error) {
        CHECK(contains(error.what(), "changed"));
      }
    }
  }
}

TEST_CASE("a folder per class is a set of images") {
  if (!hasReaders())
    return;
  Folder folder;
  const std::string png = bytesOf(image("rgb.png")), jpeg = bytesOf(image("color.jpg"));
  folder.write("dog/b.PNG", png);
  folder.write("dog/a.jpeg", jpeg);
  folder.write("dog/more/0.jpg", jpeg);
  folder.write("cat/z.png", png);
  folder.write("cat/notes.txt", "no image");
  folder.write("readme.png", "not in a class");
  auto images = image_folder(folder.path);
  CHECK(images->classes() == std::vector<std::string>{"cat", "dog"});
  REQUIRE(images->size() == 4);
  std::vector<std::string> names;
  for (const auto &[path, number] : images->samples())
    names.push_back(path.substr(folder.path.string().size() + 1) + " " + std::to_string(number));
  CHECK(names == std::vector<std::string>{"cat/z.png 0", "dog/a.jpeg 1", "dog/b.PNG 1", "dog/more/0.jpg 1"});
  Example first = images->get(0);
  CHECK(str(first[0].spec()) == "f32[3, 5, 7]");
  CHECK(largestDifference(first[0] * 255, load_image(image("rgb.png")).to(f32)) < 1e-4);
  CHECK(first[1].spec() == TensorSpec{i64, {}});
  CHECK(images->get(2)[1].item<int>() == 1);
  CHECK(str(image_folder(folder.path, ImageMode::Gray)->get(1)[0].spec()) == "f32[1, 13, 18]");
  DataLoader loader(images, {.batch_size = 4, .workers = 2, .transform = resize(6, 8)});
  Example batch = *loader.next();
  CHECK(str(batch[0].spec()) == "f32[4, 3, 6, 8]");
  CHECK(ints(batch[1]) == std::vector<int64_t>{0, 1, 1, 1});

  folder.write("dog/a.jpeg", jpeg.substr(0, 300));
  DataLoader damaged(image_folder(folder.path), {.workers = 1});
  damaged.next();
  std::string what = messageOf([&] { damaged.next(); });
  CHECK(contains(what, "example 1"));
  CHECK(contains(what, "dog/a.jpeg"));
  fs::create_directory(folder.path / "empty");
  CHECK_ERROR(image_folder(folder.path), "no image", "empty");
  CHECK_ERROR(image_folder(folder.path / "cat"), "no folder of a class");
  CHECK_ERROR(image_folder(folder.file("none")), "none");
}

/// The next test starts this case as a separate process.
TEST_CASE("reads an image without the plug-in", "[.]") {
  CHECK_ERROR(load_image(image("rgb.png")), "reader of PNG files is not there", "libpng-dev", "BURIN_IMAGES");
  CHECK_ERROR(load_image(image("color.jpg")), "reader of JPEG files is not there", "libjpeg62-turbo-dev");
}

TEST_CASE("without the plug-in of image readers an error says what is missing") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("BURIN_IMAGES", "/nowhere/libburin_images.so", 1);
    execl("/proc/self/exe", "data-tests", "reads an image without the plug-in", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

// ---- tables

TEST_CASE("a table of numbers") {
  Folder folder;
  const std::string path = folder.write("houses.csv", "\xef\xbb\xbf"
                                                      "area, rooms ,\"price, in \"\"k\"\"\"\r\n"
                                                      "50.5,2,100\r\n\r\n 80 ,+3,\"250\"\r\n1e2,-4,nan");
  auto table = csv_dataset(path);
  CHECK(table->columns() == std::vector<std::string>{"area", "rooms"});
  CHECK(table->size() == 3);
  CHECK(str(table->features().spec()) == "f32[3, 2]");
  CHECK(floats(table->features()) == std::vector<float>{50.5, 2, 80, 3, 100, -4});
  CHECK(str(table->targets().spec()) == "f32[3]");
  CHECK(std::isnan(table->targets()[2].item()));
  Example row = table->get(1);
  CHECK(str(row[0].shape()) == "[2]");
  CHECK((row[1].rank() == 0 && row[1].item() == 250));
  auto chosen = csv_dataset(path, {.features = {"rooms"}, .targets = {"area", "price, in \"k\""}});
  CHECK(str(chosen->features().shape()) == "[3, 1]");
  CHECK(str(chosen->targets().shape()) == "[3, 2]");
  CHECK(floats(chosen->targets()[0]) == std::vector<float>{50.5, 100});
  DataLoader loader(table, {.batch_size = 2});
  CHECK(floats((*loader.next())[1]) == std::vector<float>{100, 250});
}

TEST_CASE("classes in a table") {
  Folder folder;
  const std::string path = folder.write("iris", "5.1;setosa\n6.2;virginica\n4.9;\"setosa\"\n5.9;versicolor\n");
  auto table = csv_dataset(path, {.header = false, .delimiter = ';', .class_targets = true});
  CHECK(table->classes() == std::vector<std::string>{"setosa", "versicolor", "virginica"});
  CHECK(table->columns() == std::vector<std::string>{"0"});
  CHECK(table->targets().dtype() == i64);
  CHECK(ints(table->targets()) == std::vector<int64_t>{0, 2, 0, 1});
  auto numbers =
      csv_dataset(folder.write("n.csv", "x,class,y\n1,3,2\n4,0,5\n"), {.targets = {"class"}, .target_dtype = i64});
  CHECK(numbers->columns() == std::vector<std::string>{"x", "y"});
  CHECK(ints(numbers->targets()) == std::vector<int64_t>{3, 0});
}

TEST_CASE("errors in a table name its line") {
  Folder folder;
  auto table = [&](const std::string &text) { return folder.write("t.csv", text); };
  CHECK_ERROR(csv_dataset(table("a,b\n1,2\n3,four\n")), "t.csv:3", "column \"b\"", "no number but \"four\"");
  CHECK_ERROR(csv_dataset(table("a,b\n1,2\n\n3,\n")), "t.csv:4", "column \"b\" is empty", "missing");
  CHECK_ERROR(csv_dataset(table("a,b\n\"1\",\"2\"\n1,2,3\n")), "t.csv:3", "3 fields, not 2");
  CHECK_ERROR(csv_dataset(table("a,b\n\"\n1\",2\n3,x\n")), "t.csv:2", "no number"); // a field of two lines
  CHECK_ERROR(csv_dataset(table("\"a\n\",b\n1,2\n3,x\n")), "t.csv:4");
  CHECK_ERROR(csv_dataset(table("a,b\n1,\"2\n")), "t.csv:2", "not closed");
  CHECK_ERROR(csv_dataset(table("a,b\n1,\"2\"3\n")), "t.csv:2", "behind the closing quote");
  CHECK_ERROR(csv_dataset(table("a,b\n1,2.5\n"), {.target_dtype = i64}), "t.csv:2", "no integer but \"2.5\"");
  CHECK_ERROR(csv_dataset(table("a,b\n")), "no rows");
  CHECK_ERROR(csv_dataset(table("")), "no rows");
  CHECK_ERROR(csv_dataset(table("a\n1\n")), "delimiter");
  CHECK_ERROR(csv_dataset(table("a,b\n1,2\n"), {.features = {"c"}}), "no column \"c\" among \"a\", \"b\"");
  CHECK_ERROR(csv_dataset(table("a,b\n1,2\n"), {.delimiter = '"'}), "delimiter");
  CHECK_ERROR(csv_dataset(folder.file("none.csv")), "none.csv");
  auto filled = csv_dataset(folder.write("m.csv", "a,b,c\n1, ,3\n"), {.missing = -1});
  CHECK(floats(filled->features()) == std::vector<float>{1, -1});
}

// ---- text, tensors

TEST_CASE("windows of text") {
  Folder folder;
  const std::string path = folder.write("text", "abcdef\xff");
  DatasetRef windows = byte_dataset(path, 3);
  CHECK(windows->size() == 4);
  CHECK(ints(windows->get(0)[0]) == std::vector<int64_t>{'a', 'b', 'c'});
  CHECK(ints(windows->get(0)[1]) == std::vector<int64_t>{'b', 'c', 'd'});
  CHECK(ints(windows->get(3)[1]) == std::vector<int64_t>{'e', 'f', 255});
  DatasetRef apart = byte_dataset(path, 2, 2);
  CHECK(apart->size() == 3);
  CHECK(ints(apart->get(2)[0]) == std::vector<int64_t>{'e', 'f'});
  DataLoader loader(windows, {.batch_size = 2});
  Example batch = *loader.next();
  CHECK(str(batch[0].spec()) == "i64[2, 3]");
  CHECK(ints(batch[1]) == std::vector<int64_t>{'b', 'c', 'd', 'c', 'd', 'e'});
  CHECK(byte_dataset(path, 6)->size() == 1);
  CHECK_ERROR(byte_dataset(path, 7), "text", "7 bytes", "8 of a window");
  CHECK_ERROR(byte_dataset(path, 0), "positive");
  CHECK_ERROR(byte_dataset(folder.file("none"), 2), "none");
  CHECK_THROWS(windows->get(4));
}

TEST_CASE("arrays in files are sets") {
  Folder folder;
  save_npy(folder.file("x.npy"), arange(6).to(f32).reshape({3, 2}));
  save_npy(folder.file("y.npy"), arange(3));
  DataLoader arrays(tensor_dataset({load_npy(folder.file("x.npy")), load_npy(folder.file("y.npy"))}),
                    {.batch_size = 3});
  CHECK(ints((*arrays.next())[1]) == std::vector<int64_t>{0, 1, 2});
  save_safetensors(folder.file("all.safetensors"), {{"x", arange(6).to(f32).reshape({3, 2})}, {"y", arange(3) + 7}});
  StateDict all = load_safetensors(folder.file("all.safetensors"));
  DataLoader mapped(tensor_dataset({all.at("x"), all.at("y")}), {.batch_size = 2, .shuffle = true});
  Example batch = *mapped.next();
  CHECK(ints(batch[0][{Slice(), 0}].to(i64) / 2 + 7) == ints(batch[1]));
}
