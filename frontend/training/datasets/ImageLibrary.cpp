#include "frontend/training/datasets/ImageLibrary.h"
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>
#include <vector>

namespace burin::data {

namespace {

/// A function of this library, which dladdr() finds.
void here() {}

std::vector<std::string> places() {
  constexpr const char *kName = "burin/libburin_images.so";
  if (const char *given = std::getenv("BURIN_IMAGES"))
    return {given};
  std::vector<std::string> result;
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&here), &info) && info.dli_fname) {
    std::error_code ignored;
    const auto folder = std::filesystem::weakly_canonical(info.dli_fname, ignored).parent_path();
    result = {folder / kName, folder / "../lib" / kName, folder / "../../lib" / kName};
  }
  result.emplace_back(kName);
  return result;
}

/// The plug-in, which stays loaded; null with a problem. A failure is tried again at the next call.
void *library(std::string &problem) {
  static std::mutex mutex;
  static void *loaded = nullptr;
  std::lock_guard lock(mutex);
  for (const std::string &place : places()) {
    if (loaded)
      break;
    loaded = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!loaded && (problem.empty() || std::filesystem::exists(place)))
      problem = dlerror();
  }
  return loaded;
}

} // namespace

BurinReadImage *imageReader(ImageFormat format, const char *op, const Location &where) {
  const bool isPng = format == ImageFormat::Png;
  const std::string kind = isPng ? "PNG" : "JPEG";
  const std::string needed = isPng ? "libpng (Debian's libpng-dev)" : "libjpeg (Debian's libjpeg62-turbo-dev)";
  std::string problem;
  void *opened = library(problem);
  if (!opened)
    throw Error(where, op,
                "the reader of " + kind + " files is not there: " + problem +
                    ";\n  it is a part of burin of its own, libburin_images.so, which needs " + needed +
                    " when burin is built; BURIN_IMAGES may say where it is");
  void *function = dlsym(opened, isPng ? "burin_read_png" : "burin_read_jpeg");
  if (!function)
    throw Error(where, op,
                "burin was built without a reader of " + kind + " files, which needs " + needed +
                    ": build it again with that");
  return reinterpret_cast<BurinReadImage *>(function);
}

} // namespace burin::data
