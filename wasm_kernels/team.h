/* Threads that share the work of a run, in the native library only.
 *
 * A team has one round of work at a time, of up to MOST_PARTS parts, each of which one thread takes. Who leads takes parts too, and
 * waits only for parts that others have taken: with all others asleep it does everything itself, and nothing else changes. Which
 * thread does a part is left to chance, so what a part computes must not depend on it. */
#ifndef WEBRNN_TEAM_H
#define WEBRNN_TEAM_H
#include <stdint.h>

enum { MOST_PARTS = 31 };

/* who: 0 for the thread that leads, otherwise the number of another one */
typedef void TeamWork(void *context, int32_t part, int32_t who);

typedef struct {
  /* The number of the round, then a bit for each part that is taken or does not exist. A part is taken by an exchange of all of it, so
   * nobody takes a part of a round that has ended, and `work` and `context` are those of the round whose part was taken. */
  uint64_t round;
  char apart[56]; /* who waits reads `round` again and again, who works writes `left` */
  int32_t left;   /* parts that are not done */
  char far[60];
  TeamWork *work;
  void *context;
  int32_t is_led, is_over;
  int32_t present; /* threads that wait for work or do it, who leads not counted */
  uint32_t calls, answered; /* how often the host called for help, and how often it had when the last run began */
  uint32_t asleep;          /* a bit for each thread that goes back to its host and has to be woken up */
} Team;

/* Whether the caller leads the team from now on; false if somebody else does */
int wr_team_lead(Team *team);
void wr_team_leave(Team *team);

/* Does all parts of some work. Called by who leads. */
void wr_team_share(Team *team, TeamWork *work, void *context, int32_t parts);

static inline int has_help(const Team *team) { return __atomic_load_n(&team->present, __ATOMIC_RELAXED) > 0; }
#endif
