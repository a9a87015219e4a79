/*
 * How long to wait before a lost connection to a master is opened again. Pure.
 */
#ifndef ENGINE_MASTER_RETRY_H
#define ENGINE_MASTER_RETRY_H

#include <stdint.h>

/* Growing with the attempts since it was last there, from 50 ms to two seconds; and between half
 * and all of that at random, so that daemons do not come in step. */
int64_t retry_delay_ns(unsigned attempts, uint32_t random);

#endif
