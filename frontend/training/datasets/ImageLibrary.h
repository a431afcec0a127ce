// The plug-in with the readers of image files.
#pragma once
#include "burin/error.h"
#include "frontend/training/images/ImageReaders.h"
#include <span>

namespace burin::data {

enum class ImageFormat { Png, Jpeg };

/// Loads the plug-in; throws if it is not there, or was built without this format. It is searched for in the folder
/// `burin` beside libburin (of a program that contains libburin, in ../lib/burin), and then as the system does;
/// BURIN_IMAGES is a path that replaces these.
BurinReadImage *imageReader(ImageFormat format, const char *op, const Location &where);

} // namespace burin::data
