/* Linear attention: a matrix that forgets a little, takes up a key and a value, and is read by a query, step after step. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* Vectors of columns that are taken through all steps at a time; columns do not depend on each other. */
#if VL == 16
enum { MEMORY_VECS = 4 };
#else
enum { MEMORY_VECS = 2 };
#endif

/* One step, and what the next one does to the memory first: it forgets, and recalls what it knows of its key. The memory between
 * two steps is what the next one keeps of it, so that a step reads and writes it once. */
typedef struct {
  const float *key, *query, *other_query, *forget, *next_key; /* or NULL: before the first step, of one query, after the last */
  ptrdiff_t key_step, query_step, forget_step;
  int32_t rows, pitch;
  int is_kept; /* else it is only read */
  int is_rounded; /* whether each product of a query is rounded before it is added */
} MemoryStep;

INLINE void remember(const int vecs, const MemoryStep *s, float *memory, int rest, const vf *taken, vf *read, vf *other_read,
                     vf *recalled) {
  UNROLL for (int v = 0; v < vecs; v++) read[v] = other_read[v] = recalled[v] = vset(0.0f);
  for (int k = 0; k < s->rows; k++, memory += s->pitch) {
    vf m[MEMORY_VECS];
    UNROLL for (int v = 0; v < vecs; v++) m[v] = vecs > 1 ? vload(memory + v * VL) : vload_upto(memory, rest);
    if (s->key) {
      const vf key = vset(s->key[k * s->key_step]), query = vset(s->query[k * s->query_step]);
      UNROLL for (int v = 0; v < vecs; v++) m[v] = m[v] + key * taken[v];
      UNROLL for (int v = 0; v < vecs; v++) read[v] = s->is_rounded ? read[v] + query * m[v] : vfma(query, m[v], read[v]);
    }
    if (s->other_query) {
      const vf query = vset(s->other_query[k * s->query_step]);
      UNROLL for (int v = 0; v < vecs; v++) other_read[v] = s->is_rounded ? other_read[v] + query * m[v] : vfma(query, m[v], other_read[v]);
    }
    if (!s->is_kept) continue;
    if (s->forget) {
      const vf kept = vset(s->forget[k * s->forget_step]);
      UNROLL for (int v = 0; v < vecs; v++) m[v] = m[v] * kept;
    }
    if (s->next_key) {
      const vf key = vset(s->next_key[k * s->key_step]);
      UNROLL for (int v = 0; v < vecs; v++) recalled[v] = vfma(key, m[v], recalled[v]);
    }
    UNROLL for (int v = 0; v < vecs; v++) {
      if (vecs > 1) vstore(memory + v * VL, m[v]);
      else vstore_upto(memory, m[v], rest);
    }
  }
}

static int check_linear_attention(Vm *vm, const linear_attention_operands *o) {
  const Tensor *q = T(query), *k = T(key), *v = T(value), *m = T(memory), *y = T(read);
  ASK(q->rank == 5 && k->rank == 4 && v->rank == 4 && m->rank == 4 && y->rank == 5);
  ASK(!HAS(forget) || (T(forget)->rank == 4 && same_sizes(T(forget), k)));
  ASK(!HAS(rate) || T(rate)->rank == 3);
  for (int a = 0; a < 3; a++) {
    const int32_t size = y->size[a];
    ASK(q->size[a] == size && k->size[a] == size && v->size[a] == size && (!HAS(rate) || T(rate)->size[a] == size));
  }
  const int32_t rows = k->size[3], cols = v->size[3];
  ASK(m->size[0] == y->size[1] && m->size[1] == y->size[2] && m->size[2] == rows && m->size[3] == cols);
  ASK(y->size[3] > 0 && q->size[3] == y->size[3] && q->size[4] == rows && y->size[4] == cols);
  ASK(cols == 1 || (v->stride[3] == 1 && m->stride[3] == 1 && y->stride[4] == 1));
  return OK;
}

/* Of a step, a batch and a head */
INLINE float *memory_at(const Tensor *t, int32_t step, int32_t b, int32_t h) {
  return (float *)t->data + (ptrdiff_t)step * t->stride[0] + (ptrdiff_t)b * t->stride[1] + (ptrdiff_t)h * t->stride[2];
}

/* Some columns of one head's memory through all steps */
INLINE void attend(const int vecs, Vm *vm, const linear_attention_operands *o, int32_t b, int32_t h, int32_t col, int rest) {
  const Tensor *q = T(query), *k = T(key), *y = T(read), *m = T(memory);
  const int32_t steps = y->size[0], group = y->size[3];
  float *memory = (float *)m->data + (ptrdiff_t)b * m->stride[0] + (ptrdiff_t)h * m->stride[1] + col;
  MemoryStep s = {0};
  s.key_step = k->stride[3], s.query_step = q->stride[4], s.forget_step = HAS(forget) ? T(forget)->stride[3] : 0;
  s.rows = k->size[3], s.pitch = m->stride[2], s.is_rounded = o->is_rounded;
  vf taken[MEMORY_VECS], read[2][MEMORY_VECS], recalled[MEMORY_VECS];
  for (int32_t t = -1; t < steps; t++) {
    const int32_t next = t + 1;
    s.key = t >= 0 ? memory_at(k, t, b, h) : NULL;
    s.forget = next < steps && HAS(forget) ? memory_at(T(forget), next, b, h) : NULL;
    s.next_key = next < steps && o->is_delta ? memory_at(k, next, b, h) : NULL;
    for (int32_t g = t >= 0 ? (group - 1) & ~1 : 0; g >= 0; g -= 2) { /* the last of them changes the memory */
      s.query = t >= 0 ? memory_at(q, t, b, h) + (ptrdiff_t)g * q->stride[3] : NULL;
      s.other_query = t >= 0 && g + 1 < group ? s.query + q->stride[3] : NULL;
      s.is_kept = g == 0;
      if (s.key || s.forget || s.next_key) remember(vecs, &s, memory, rest, taken, read[0], read[1], recalled);
      for (int i = 0; t >= 0 && i < 2 && g + i < group; i++) {
        float *to = memory_at(y, t, b, h) + (ptrdiff_t)(g + i) * y->stride[3] + col;
        UNROLL for (int v = 0; v < vecs; v++) vstore_upto(to + v * VL, read[i][v], vecs > 1 ? VL : rest);
      }
    }
    if (next == steps) break;
    const float *value = memory_at(T(value), next, b, h) + col;
    UNROLL for (int v = 0; v < vecs; v++) {
      taken[v] = vecs > 1 ? vload(value + v * VL) : vload_upto(value, rest);
      if (o->is_delta) taken[v] = taken[v] - recalled[v];
      if (HAS(rate)) taken[v] = taken[v] * vset(*memory_at(T(rate), next, b, h));
    }
  }
}

static int attend_heads(Vm *vm, const void *context, int32_t from, int32_t to) {
  const linear_attention_operands *o = context;
  const int32_t heads = T(read)->size[2], cols = T(memory)->size[3];
  for (; from < to; from++) {
    const int32_t b = from / heads, h = from % heads;
    int32_t col = 0;
    for (; col + MEMORY_VECS * VL <= cols; col += MEMORY_VECS * VL) attend(MEMORY_VECS, vm, o, b, h, col, 0);
    for (; col < cols; col += VL) attend(1, vm, o, b, h, col, cols - col);
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  return OK;
}
static int run_linear_attention(Vm *vm, const linear_attention_operands *o) {
  const Tensor *y = T(read);
  CHARGE_LOOP(vm, y->size[0]);
  if (!T(memory)->count && !y->count) return OK;
  const int64_t work = 3 * (int64_t)y->size[0] * T(memory)->count;
  return share(vm, attend_heads, o, y->size[1] * y->size[2], 1, work);
}
