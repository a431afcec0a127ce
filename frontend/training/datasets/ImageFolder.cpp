// Image files, and folders of them.
#include "burin/tensor/creation.h"
#include "burin/training/readers.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/training/datasets/Checks.h"
#include "frontend/training/datasets/ImageLibrary.h"
#include "runtime/npy/Npy.h"
#include <algorithm>
#include <filesystem>

namespace burin::data {

using detail::inScope;
namespace fs = std::filesystem;

namespace {

/// The pixels of an image, freed with it.
struct Pixels : BurinImage {
  Pixels() : BurinImage{} {}
  ~Pixels() { std::free(pixels); }
  Pixels(const Pixels &) = delete;
};

[[noreturn]] void refuse(const Location &where, const char *op, const std::string &path, const std::string &problem) {
  throw Error(where, op, "cannot read \"" + path + "\": " + problem);
}

void readPixels(const std::string &path, Pixels &pixels, const char *op, const Location &where) {
  std::string problem;
  auto file = rt::readWholeFile(path, problem);
  if (!file)
    throw Error(where, op, problem);
  auto beginsWith = [&](std::string_view magic) {
    return file->size() >= magic.size() && std::memcmp(file->data(), magic.data(), magic.size()) == 0;
  };
  const bool isPng = beginsWith("\x89PNG\r\n\x1a\n");
  if (!isPng && !beginsWith("\xff\xd8\xff"))
    refuse(where, op, path, file->empty() ? "the file is empty" : "it is neither a PNG nor a JPEG file");
  BurinReadImage *read = imageReader(isPng ? ImageFormat::Png : ImageFormat::Jpeg, op, where);
  if (!read(reinterpret_cast<const unsigned char *>(file->data()), file->size(), &pixels))
    refuse(where, op, path, pixels.problem);
}

/// Calls put(index in [C, H, W], value) for each value.
template <class F> void eachValue(const Pixels &pixels, ImageMode mode, F put) {
  const size_t plane = size_t(pixels.height) * pixels.width;
  for (size_t i = 0; i < plane; ++i) {
    const unsigned char *p = pixels.pixels + 3 * i;
    if (mode == ImageMode::Gray) { // the weights of ITU-R BT.601 in 65536ths, as PIL's
      put(i, static_cast<unsigned char>((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16));
      continue;
    }
    for (size_t c = 0; c < 3; ++c)
      put(c * plane + i, p[c]);
  }
}

template <class T, class F> Tensor tensorOf(const Pixels &pixels, ImageMode mode, F convert, const Location &where) {
  const int64_t channels = mode == ImageMode::Rgb ? 3 : 1;
  std::vector<T> values(size_t(channels) * pixels.height * pixels.width);
  eachValue(pixels, mode, [&](size_t at, unsigned char value) { values[at] = convert(value); });
  return from_bytes(values.data(), {dtypeOf<T>(), {channels, int64_t(pixels.height), int64_t(pixels.width)}}, where);
}

} // namespace

Tensor load_image(const std::string &path, ImageMode mode, Location where) {
  const Location place = inScope(where);
  Pixels pixels;
  readPixels(path, pixels, "load_image", place);
  return tensorOf<uint8_t>(pixels, mode, [](unsigned char value) { return value; }, place);
}

// ---- folders

struct ImageFolder::Files {
  ImageMode mode;
  Location where;
  std::vector<std::string> classes;
  std::vector<std::pair<std::string, int64_t>> samples;
};

static bool isImage(const fs::path &path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

/// The images of a folder and its subfolders: those of a folder by name, then those of its subfolders.
static std::vector<std::string> imagesIn(const fs::path &folder) {
  std::vector<std::pair<std::string, std::string>> found; // folder, name
  for (const auto &entry : fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink))
    if (isImage(entry.path()) && entry.is_regular_file())
      found.emplace_back(entry.path().parent_path().string(), entry.path().filename().string());
  std::ranges::sort(found);
  std::vector<std::string> paths;
  for (const auto &[parent, name] : found)
    paths.push_back((fs::path(parent) / name).string());
  return paths;
}

ImageFolder::ImageFolder(const std::string &folder, ImageMode mode, Location where) {
  constexpr const char *kOp = "image_folder";
  const Location place = inScope(where);
  auto found = std::make_unique<Files>(Files{mode, place, {}, {}});
  try {
    for (const auto &entry : fs::directory_iterator(folder))
      if (entry.is_directory())
        found->classes.push_back(entry.path().filename().string());
    std::ranges::sort(found->classes);
    for (size_t i = 0; i < found->classes.size(); ++i) {
      const fs::path path = fs::path(folder) / found->classes[i];
      std::vector<std::string> images = imagesIn(path);
      if (images.empty())
        throw Error(place, kOp, "there is no image .png, .jpg or .jpeg in \"" + path.string() + "\"");
      for (std::string &image : images)
        found->samples.emplace_back(std::move(image), int64_t(i));
    }
  } catch (const fs::filesystem_error &error) {
    throw Error(place, kOp, "cannot read \"" + error.path1().string() + "\": " + error.code().message());
  }
  if (found->classes.empty())
    throw Error(place, kOp, "there is no folder of a class in \"" + folder + "\"");
  files = std::move(found);
}
ImageFolder::~ImageFolder() = default;

int64_t ImageFolder::size() const { return int64_t(files->samples.size()); }
const std::vector<std::string> &ImageFolder::classes() const { return files->classes; }
const std::vector<std::pair<std::string, int64_t>> &ImageFolder::samples() const { return files->samples; }

Example ImageFolder::get(int64_t index) const {
  requireExample(index, size(), "image_folder", files->where);
  const auto &[path, number] = files->samples[size_t(index)];
  Pixels pixels;
  readPixels(path, pixels, "image_folder", files->where);
  Tensor image =
      tensorOf<float>(pixels, files->mode, [](unsigned char value) { return float(value) / 255; }, files->where);
  return {std::move(image), from_vector(std::vector<int64_t>{number}, Shape{}, files->where)};
}

std::shared_ptr<const ImageFolder> image_folder(const std::string &folder, ImageMode mode, Location where) {
  return std::make_shared<ImageFolder>(folder, mode, inScope(where));
}

} // namespace burin::data
