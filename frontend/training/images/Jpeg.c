/* Reads JPEG files by libjpeg-turbo. */
#include "frontend/training/images/ImageReaders.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
/* After stdio.h, which it needs. */
#include <jerror.h>
#include <jpeglib.h>

/* What outlives a jump out of libjpeg. */
struct Reading {
  struct jpeg_error_mgr errors; /* first, as libjpeg has a pointer to it */
  jmp_buf out;
  struct jpeg_decompress_struct jpeg;
  struct BurinImage *image;
  unsigned char *row; /* of an image of four colours */
};

static void fail(j_common_ptr jpeg) {
  struct Reading *reading = (struct Reading *)jpeg->err;
  char message[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, message);
  snprintf(reading->image->problem, sizeof reading->image->problem, "%s", message);
  longjmp(reading->out, 1);
}
static void failWith(struct Reading *reading, const char *problem) {
  snprintf(reading->image->problem, sizeof reading->image->problem, "%s", problem);
  longjmp(reading->out, 1);
}
/* libjpeg goes on after damage, with made-up pixels; here it does not. Oddities that change no pixel are ignored. */
static void warn(j_common_ptr jpeg, int level) {
  const int code = jpeg->err->msg_code;
  if (level < 0 &&
      (code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC))
    fail(jpeg);
}

/* Colours of printing: pixels are the light that inks leave. Adobe's files have them inverted. */
static void fromInks(struct Reading *r, unsigned char *to) {
  for (uint32_t x = 0; x < r->jpeg.output_width; ++x)
    for (int c = 0; c < 3; ++c) {
      const int color = r->row[4 * x + c], black = r->row[4 * x + 3];
      *to++ = (unsigned char)((r->jpeg.saw_Adobe_marker ? color * black : (255 - color) * (255 - black)) / 255);
    }
}

static void readPixels(struct Reading *r, const unsigned char *bytes, size_t size) {
  jpeg_create_decompress(&r->jpeg);
  jpeg_mem_src(&r->jpeg, bytes, size);
  jpeg_read_header(&r->jpeg, TRUE);
  const int isInk = r->jpeg.jpeg_color_space == JCS_CMYK || r->jpeg.jpeg_color_space == JCS_YCCK;
  r->jpeg.out_color_space = isInk ? JCS_CMYK : JCS_RGB;
  if ((uint64_t)r->jpeg.image_width * r->jpeg.image_height > BURIN_IMAGE_MOST_PIXELS)
    failWith(r, "the image has too many pixels");
  jpeg_start_decompress(&r->jpeg);
  const size_t row = (size_t)r->jpeg.output_width * 3;
  r->image->pixels = malloc(row * r->jpeg.output_height);
  r->row = isInk ? malloc((size_t)r->jpeg.output_width * 4) : NULL;
  if (!r->image->pixels || (isInk && !r->row))
    failWith(r, "there is no memory for the image");
  while (r->jpeg.output_scanline < r->jpeg.output_height) {
    unsigned char *to = r->image->pixels + r->jpeg.output_scanline * row;
    JSAMPROW line = isInk ? r->row : to;
    jpeg_read_scanlines(&r->jpeg, &line, 1);
    if (isInk)
      fromInks(r, to);
  }
  r->image->width = r->jpeg.output_width;
  r->image->height = r->jpeg.output_height;
  jpeg_finish_decompress(&r->jpeg);
}

int burin_read_jpeg(const unsigned char *bytes, size_t size, struct BurinImage *image) {
  struct Reading reading = {.image = image};
  image->pixels = NULL;
  reading.jpeg.err = jpeg_std_error(&reading.errors);
  reading.errors.error_exit = fail;
  reading.errors.emit_message = warn;
  const int isRead = !setjmp(reading.out) ? (readPixels(&reading, bytes, size), 1) : 0;
  jpeg_destroy_decompress(&reading.jpeg);
  free(reading.row);
  if (!isRead) {
    free(image->pixels);
    image->pixels = NULL;
  }
  return isRead;
}
