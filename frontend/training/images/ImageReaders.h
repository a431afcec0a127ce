/* Interface of the plug-in that reads image files, libburin_images.so. It is loaded when an image is read, so that
   libburin itself needs neither libpng nor libjpeg; functions of formats that it was built without are missing. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pixels more than these are refused. */
#define BURIN_IMAGE_MOST_PIXELS (UINT64_C(1) << 28)

struct BurinImage {
  uint32_t height, width;
  unsigned char *pixels; /* height · width times red, green, blue; freed by free() */
  char problem[256];     /* if it cannot be read */
};

/* Reads the bytes of a file. Returns 1, or 0 with a problem and no pixels. */
/* NOLINTNEXTLINE(modernize-use-using): C includes this */
typedef int BurinReadImage(const unsigned char *bytes, size_t size, struct BurinImage *image);
BurinReadImage burin_read_png, burin_read_jpeg;

#ifdef __cplusplus
}
#endif
