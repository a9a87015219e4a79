#include "tests/unit/cluster_fixture.h"

struct cluster w;

void cluster_setup(void)
{
    cluster_init(&w, 5);
}

void cluster_setup_settled(void)
{
    cluster_init(&w, 5);
    cluster_pass_ms(&w, 10);
}

void cluster_teardown(void)
{
    cluster_deinit(&w);
}
