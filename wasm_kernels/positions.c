/* Where windows are, and where their terms lie. */
#include "simd.h"

/* Positions of windows, line by line; what lies between them is in floats. */
typedef struct {
  const float *x;
  float *y;
  ptrdiff_t x_step, x_line, x_image, y_step, y_line, y_image;
  int32_t per_line, lines, count;
} Positions;

/* How the terms of a window lie: outer x inner runs of `run` floats */
typedef struct {
  int32_t outer, inner, run;
  ptrdiff_t outer_stride, inner_stride;
} Terms;

/* The position that comes next */
typedef struct {
  int32_t left, in_line, line;
  const float *x, *x_line, *x_image;
  float *y, *y_line, *y_image;
} Cursor;

static Cursor cursor_at(const Positions *p, int32_t first, int32_t count) {
  const ptrdiff_t line = first / p->per_line, column = first % p->per_line, image = line / p->lines;
  Cursor c = {count, (int32_t)column, (int32_t)(line % p->lines), 0, 0, 0, 0, 0, 0};
  c.x_image = p->x + image * p->x_image, c.y_image = p->y + image * p->y_image;
  c.x_line = c.x_image + c.line * p->x_line, c.y_line = c.y_image + c.line * p->y_line;
  c.x = c.x_line + column * p->x_step, c.y = c.y_line + column * p->y_step;
  return c;
}

INLINE void go_on(const Positions *p, Cursor *c) {
  c->x += p->x_step, c->y += p->y_step;
  if (++c->in_line < p->per_line) return;
  c->in_line = 0, c->x_line += p->x_line, c->y_line += p->y_line;
  if (++c->line == p->lines) {
    c->line = 0, c->x_image += p->x_image, c->y_image += p->y_image;
    c->x_line = c->x_image, c->y_line = c->y_image;
  }
  c->x = c->x_line, c->y = c->y_line;
}

/* Where the next `rows` positions are; behind the last one it is taken again, and computed again */
INLINE void take(const Positions *p, Cursor *c, const int rows, const float **x, float **y) {
  UNROLL for (int r = 0; r < rows; r++) {
    x[r] = c->x, y[r] = c->y;
    if (c->left > 1) c->left--, go_on(p, c);
    else c->left = r + 1 == rows ? 0 : c->left;
  }
}
