/* An instruction in parts, which the threads of a team do side by side. An output is still one chain of operations in one thread, so
 * results are the same bits for any number of threads. */
#include "plan.gen.h"

/* Does the units from `from` to `to` of an instruction: rows, columns, positions. Parts of one instruction write to different places
 * and read nothing that another one writes. */
typedef int Part(Vm *vm, const void *context, int32_t from, int32_t to);

#ifdef HAS_TEAM
typedef struct {
  Vm vm; /* as it was when the work began */
  Vm *leader;
  Part *part;
  const void *context;
  int32_t units, parts, error;
} Shared;

/* Each thread has a VM of its own: registers, clock, what is done. */
NOINLINE int part_of_other(const Shared *s, int32_t from, int32_t to) {
  _Alignas(64) char registers[MAX_REGISTERS * TILE * 8];
  Vm own = s->vm;
  own.registers = registers;
  return s->part(&own, s->context, from, to);
}
static void do_part(void *context, int32_t part, int32_t who) {
  Shared *s = context;
  const int32_t from = (int32_t)((int64_t)s->units * part / s->parts),
                to = (int32_t)((int64_t)s->units * (part + 1) / s->parts);
  const int error = who ? part_of_other(s, from, to) : s->part(s->leader, s->context, from, to);
  if (error) __atomic_store_n(&s->error, error, __ATOMIC_RELAXED);
}

NOINLINE int share_parts(Vm *vm, Part *part, const void *context, int32_t units, int32_t parts) {
  Team *team = vm->team;
  vm->team = NULL; /* a part is not shared again */
  Shared s = {*vm, vm, part, context, units, parts, OK};
  wr_team_share(team, do_part, &s, parts);
  vm->team = team;
  return s.error;
}

/* Work in parts even if nobody is there yet, in multiply-adds: the host calls threads for as much (LEAST_SHARED of team.py), and who
 * comes late takes a part that is left. */
enum { WORTH_A_WAKING = 4 << 20 };

/* For how many parts the work suffices if none has fewer than `least` units; 1 without a team */
INLINE int32_t parts_of(Vm *vm, int32_t units, int32_t least, int64_t work) {
  if (!vm || !vm->hired) return 1;
  vm->work += work;
  if (!vm->team || units < 2 * least || work < 2 * (int64_t)vm->least_work) return 1;
  vm->shared += work;
  if (vm->least_work && work < WORTH_A_WAKING && !has_help(vm->team)) return 1;
  const int64_t most = work / (vm->least_work + 1), by_units = units / least, parts = most < by_units ? most : by_units;
  return parts < vm->threads ? (int32_t)parts : vm->threads;
}
#else
#define parts_of(vm, units, least, work) ((void)(least), (void)(work), 1)
#define share_parts(vm, part, context, units, parts) OK
#endif

/* All units of an instruction. vm: NULL for a kernel that is called alone. work: how many multiply-adds that is, or what takes as long */
INLINE int share(Vm *vm, Part *part, const void *context, int32_t units, int32_t least, int64_t work) {
  const int32_t parts = parts_of(vm, units, least, work);
  return parts > 1 ? share_parts(vm, part, context, units, parts) : part(vm, context, 0, units);
}
