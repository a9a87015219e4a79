/* Declarations shared by the files of the simulator's faults. */
#ifndef TESTS_SIM_FAULT_PARTS_H
#define TESTS_SIM_FAULT_PARTS_H

#include "tests/sim/sim.h"

/* Draw a master for the fault. */
struct sim_master *fault_some_master(struct sim *sim, struct sim_fault_run *run);

/* No bytes pass between the owner of a wire and the master before until_ns. Bits of `directions`: 1
 * to the master, 2 from the master. */
void fault_block(struct sim *sim, unsigned master, unsigned owner, unsigned directions,
                 int64_t until_ns);

/* Has the data of a master gone back, and no record shows it yet? Then no daemon may be replaced,
 * since the new one could not know. */
bool fault_needs_daemons(const struct sim *sim);

/* Start a daemon on another host, that is with another clock. */
void fault_start_elsewhere(struct sim *sim, unsigned index);

/* Clocks: fault_clocks.c. */
bool fault_step_forward_begin(struct sim *sim, struct sim_fault_run *run);
void fault_step_forward_end(struct sim *sim, struct sim_fault_run *run);
bool fault_step_twice_begin(struct sim *sim, struct sim_fault_run *run);
void fault_step_twice_end(struct sim *sim, struct sim_fault_run *run);
bool fault_step_back_begin(struct sim *sim, struct sim_fault_run *run);
bool fault_step_and_back_begin(struct sim *sim, struct sim_fault_run *run);
void fault_step_and_back_end(struct sim *sim, struct sim_fault_run *run);
bool fault_daemon_wall_begin(struct sim *sim, struct sim_fault_run *run);

/* Decide whether this schedule repoints a name: fault_repoint.c. Bit sets of faults: those that may
 * happen in any schedule, and of these, the calm and the forgetful ones (fault.c). */
void fault_plan_repointing(struct sim *sim, uint64_t allowed, uint64_t calm, uint64_t forgets);

/* All daemons follow the name. Releases of tokens on one of its servers have gone to the other:
 * fault_repoint.c. */
void fault_repoint_end(struct sim *sim);

#endif
