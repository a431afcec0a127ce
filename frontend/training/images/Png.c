/* Reads PNG files by libpng. */
#include "frontend/training/images/ImageReaders.h"
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What outlives a jump out of libpng. */
struct Reading {
  jmp_buf out;
  const unsigned char *at;
  size_t left;
  png_structp png;
  png_infop info;
  png_bytepp rows;
  struct BurinImage *image;
};

static void fail(png_structp png, png_const_charp message) {
  struct Reading *reading = png_get_error_ptr(png);
  snprintf(reading->image->problem, sizeof reading->image->problem, "%s", message);
  longjmp(reading->out, 1);
}
static void ignore(png_structp png, png_const_charp message) {
  (void)png;
  (void)message;
}
static void readBytes(png_structp png, png_bytep to, size_t count) {
  struct Reading *reading = png_get_io_ptr(png);
  if (count > reading->left)
    png_error(png, "the file is cut off");
  memcpy(to, reading->at, count);
  reading->at += count;
  reading->left -= count;
}

static void readPixels(struct Reading *r) {
  png_set_read_fn(r->png, r, readBytes);
  png_read_info(r->png, r->info);
  const uint32_t width = png_get_image_width(r->png, r->info), height = png_get_image_height(r->png, r->info);
  if ((uint64_t)width * height > BURIN_IMAGE_MOST_PIXELS)
    png_error(r->png, "the image has too many pixels");
  const int color = png_get_color_type(r->png, r->info);
  if (color == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(r->png);
  if (!(color & PNG_COLOR_MASK_COLOR)) {
    png_set_expand_gray_1_2_4_to_8(r->png);
    png_set_gray_to_rgb(r->png);
  }
  png_set_strip_16(r->png);
  png_set_strip_alpha(r->png);
  png_set_interlace_handling(r->png);
  png_read_update_info(r->png, r->info);
  const size_t row = png_get_rowbytes(r->png, r->info);
  if (row != (size_t)width * 3)
    png_error(r->png, "the colours are of an unknown kind");
  r->image->pixels = malloc(row * height);
  r->rows = malloc(height * sizeof *r->rows);
  if (!r->image->pixels || !r->rows)
    png_error(r->png, "there is no memory for the image");
  for (uint32_t y = 0; y < height; ++y)
    r->rows[y] = r->image->pixels + y * row;
  png_read_image(r->png, r->rows);
  png_read_end(r->png, NULL);
  r->image->width = width;
  r->image->height = height;
}

int burin_read_png(const unsigned char *bytes, size_t size, struct BurinImage *image) {
  struct Reading reading = {.at = bytes, .left = size, .image = image};
  image->pixels = NULL;
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, fail, ignore);
  reading.info = reading.png ? png_create_info_struct(reading.png) : NULL;
  if (!reading.info)
    snprintf(image->problem, sizeof image->problem, "libpng cannot be used");
  const int isRead = reading.info && !setjmp(reading.out) ? (readPixels(&reading), 1) : 0;
  png_destroy_read_struct(&reading.png, &reading.info, NULL);
  free(reading.rows);
  if (!isRead) {
    free(image->pixels);
    image->pixels = NULL;
  }
  return isRead;
}
