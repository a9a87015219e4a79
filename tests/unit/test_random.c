/*
 * Random bytes, drawn in advance (server/random.h).
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/random.h"
#include "tests/runner.h"

enum { TOKEN = 20 };

/* Two processes that continue with the same bytes would generate the same tokens. */
TEST(child_process_does_not_get_its_parents_bytes)
{
    struct random random;
    unsigned char ours[TOKEN];
    unsigned char theirs[TOKEN] = {0};
    int ends[2];
    ck_assert(random_init(&random));
    random_fill(&random, ours, TOKEN);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        random_fill(&random, theirs, TOKEN);
        _exit(write(ends[1], theirs, TOKEN) == TOKEN ? 0 : 1);
    }
    random_fill(&random, ours, TOKEN);
    ck_assert_int_eq(read(ends[0], theirs, TOKEN), TOKEN);
    ck_assert_mem_ne(ours, theirs, TOKEN);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
    random_deinit(&random);
}

TEST(bytes_are_never_repeated)
{
    enum { MANY = 2000 };
    static unsigned char drawn[MANY][TOKEN];
    struct random random;
    ck_assert(random_init(&random));
    for (unsigned i = 0; i < MANY; i++) {
        random_fill(&random, drawn[i], TOKEN);
        for (unsigned j = 0; j < i; j++)
            if (memcmp(drawn[i], drawn[j], TOKEN) == 0)
                ck_abort_msg("%u is %u again", i, j);
    }
    random_deinit(&random);
}
