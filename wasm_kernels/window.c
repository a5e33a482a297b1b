/* Convolution and pooling over x[batch, channels, height, width]; one-dimensional data has height 1.
 * `shape` holds the WINDOW_FIELDS of table.py in order. */
#include "kernels.gen.h"
#include "simd.h"

typedef struct {
  int32_t batch, channels, height, width;         /* input */
  int32_t out_channels, out_height, out_width;    /* output */
  int32_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w, groups;
} Window;

/* Element offsets inside one input plane of kernel tap (ky, kx) for `width` output positions from `first`,
 * `count` of which exist; -1 in the padding. Returns whether they are consecutive. */
static int tap_offsets(const Window *s, int ky, int kx, int first, int count, int width, int32_t offsets[PANEL]) {
  int contiguous = 1;
  for (int i = 0; i < width; i++) {
    int position = first + i;
    int iy = position / s->out_width * s->stride_h - s->pad_top + ky * s->dilation_h;
    int ix = position % s->out_width * s->stride_w - s->pad_left + kx * s->dilation_w;
    int inside = i < count && iy >= 0 && iy < s->height && ix >= 0 && ix < s->width;
    offsets[i] = inside ? iy * s->width + ix : -1;
    contiguous &= inside && offsets[i] == offsets[0] + i;
  }
  return contiguous;
}

/* The inputs of `width` output positions as a packed panel: panel[ky][kx][channel][width], the order of terms that channels
 * last have, too; or panel[channel][ky][kx][width]. */
static void gather_panel(const Window *s, const float *x, int channels, int first, int count, int width, int channels_first,
                         float *panel) {
  const ptrdiff_t plane = (ptrdiff_t)s->height * s->width;
  const ptrdiff_t next_tap = channels_first ? width : (ptrdiff_t)channels * width;
  const ptrdiff_t next_channel = channels_first ? (ptrdiff_t)s->kernel_h * s->kernel_w * width : width;
  for (int ky = 0; ky < s->kernel_h; ky++)
    for (int kx = 0; kx < s->kernel_w; kx++) {
      int32_t offsets[PANEL];
      int contiguous = tap_offsets(s, ky, kx, first, count, width, offsets);
      const float *in = x;
      float *out = panel + ((ptrdiff_t)ky * s->kernel_w + kx) * next_tap;
      for (int c = 0; c < channels; c++, in += plane, out += next_channel) {
        if (contiguous) __builtin_memmove(out, in + offsets[0], (size_t)width * sizeof *out);
        else
          for (int i = 0; i < width; i++) out[i] = offsets[i] < 0 ? 0.0f : in[offsets[i]];
      }
    }
}

/* w[out_channels, kernel_h, kernel_w, channels / groups] or with channels first, bias[out_channels] or NULL,
 * y[batch, out_channels, out_height, out_width], scratch[channels / groups * kernel_h * kernel_w * PANEL] */
static void convolve(const float *x, const float *w, const float *bias, float *y, float *scratch, const Window *s,
                     int channels_first) {
  const int in_channels = s->channels / s->groups, out_channels = s->out_channels / s->groups;
  const int k = in_channels * s->kernel_h * s->kernel_w, positions = s->out_height * s->out_width;
  if (!out_channels) return; /* positions without channels have no memory: there may be nearly 2^31 */
  for (int b = 0; b < s->batch; b++)
    for (int g = 0; g < s->groups; g++) {
      const float *in = x + ((ptrdiff_t)b * s->channels + (ptrdiff_t)g * in_channels) * s->height * s->width;
      for (int first = 0; first < positions; first += PANEL) {
        int count = positions - first < PANEL ? positions - first : PANEL;
        gather_panel(s, in, in_channels, first, count, panel_width(count), channels_first, scratch);
        Output out = {y + ((ptrdiff_t)b * s->out_channels + (ptrdiff_t)g * out_channels) * positions + first, positions, NULL,
                      bias ? bias + g * out_channels : NULL, count};
        matmul(w + (ptrdiff_t)g * out_channels * k, k, scratch, out_channels, k, out);
      }
    }
}

void wr_conv(const float *x, const float *w, const float *bias, float *y, float *scratch, const int32_t *shape) {
  convolve(x, w, bias, y, scratch, (const Window *)shape, 0);
}

/* The taps of a window that fall inside the input along one axis */
INLINE void valid_taps(int origin, int taps, int dilation, int size, int *from, int *to) {
  *from = 0, *to = taps;
  if (origin >= 0 && size - origin > (taps - 1) * dilation) return; /* no division where all are inside */
  *from = origin < 0 ? (-origin + dilation - 1) / dilation : 0;
  int fit = size > origin ? (size - 1 - origin) / dilation + 1 : 0;
  *to = fit < taps ? fit : taps;
}

#define POOL(name, start, step, finish, extra)                                                             \
  void wr_##name(const float *x, float *y, const int32_t *shape extra) {                                   \
    const Window *s = (const Window *)shape;                                                               \
    const ptrdiff_t plane = (ptrdiff_t)s->height * s->width;                                               \
    for (ptrdiff_t p = 0; p < (ptrdiff_t)s->batch * s->channels; p++, x += plane)                          \
      for (int oy = 0; oy < s->out_height; oy++)                                                           \
        for (int ox = 0; ox < s->out_width; ox++) {                                                        \
          int y0 = oy * s->stride_h - s->pad_top, x0 = ox * s->stride_w - s->pad_left, ky0, ky1, kx0, kx1; \
          valid_taps(y0, s->kernel_h, s->dilation_h, s->height, &ky0, &ky1);                               \
          valid_taps(x0, s->kernel_w, s->dilation_w, s->width, &kx0, &kx1);                                \
          float acc = (start);                                                                             \
          int count = 0;                                                                                   \
          for (int ky = ky0; ky < ky1; ky++)                                                               \
            for (int kx = kx0; kx < kx1; kx++, count++) {                                                  \
              float v = x[(ptrdiff_t)(y0 + ky * s->dilation_h) * s->width + x0 + kx * s->dilation_w];      \
              acc = (step);                                                                                \
            }                                                                                              \
          (void)count;                                                                                     \
          *y++ = (finish);                                                                                 \
        }                                                                                                  \
  }

#define NO_EXTRA
#define COUNT_PADDING , int32_t count_padding
POOL(max_pool, -__builtin_inff(), v > acc || v != v ? v : acc, acc, NO_EXTRA)
/* count_padding: divide by the whole window, padding included */
POOL(average_pool, 0.0f, acc + v, acc / (float)(count_padding ? s->kernel_h * s->kernel_w : count), COUNT_PADDING)
