/* test_state.c: the table of states of sends and receives (src/p2p/state.def): every state can be reached
 * and left, no send becomes a receive, src/p2p/README.md shows the same table, and a debug build aborts on
 * a transition that the table does not contain.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "p2p/engine.h"
#include "test.h"

/* All states that can follow the states in `set`, directly or indirectly. */
static uint32_t reachable_states(uint32_t set)
{
    for (uint32_t before = 0; before != set;) {
        before = set;
        for (int from = 0; from < STATES; from++)
            for (int to = 0; set >> from & 1 && to < STATES; to++)
                set |= (uint32_t)state_may_follow((enum p2p_state)from, (enum p2p_state)to) << to;
    }
    return set;
}

static void test_every_state_is_reached_and_left(void)
{
    uint32_t sends = reachable_states(STATE_BIT(SEND_NEW)),
             receives = reachable_states(STATE_BIT(RECV_UNMATCHED));
    EXPECT_EQ(sends & receives, STATE_BIT(DONE));
    EXPECT_EQ(sends | receives, (1u << STATES) - 1);
    for (int s = 0; s < STATES; s++) {
        bool send = strncmp(state_name((enum p2p_state)s), "SEND_", 5) == 0;
        EXPECT_EQ(sends >> s & 1, send || s == STATE_DONE);
        EXPECT(reachable_states(1u << s) & STATE_BIT(DONE));
        EXPECT(!state_may_follow((enum p2p_state)s, (enum p2p_state)s));
        EXPECT(!state_may_follow(STATE_DONE, (enum p2p_state)s));
    }
}

static void print_row(enum p2p_state from, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "| %s | %s |", state_name(from), state_description(from));
    for (int to = 0; to < STATES; to++)
        if (state_may_follow(from, (enum p2p_state)to) && n < size)
            n += (size_t)snprintf(out + n, size - n, " %s", state_name((enum p2p_state)to));
    if (n < size)
        snprintf(out + n, size - n, " |\n");
}

static const char *read_readme(void)
{
    static char text[65536];
    FILE *f = fopen(SOURCE "/src/p2p/README.md", "r");
    EXPECT(f != NULL);
    if (!f)
        return text;
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    fclose(f);
    return text;
}

static void test_readme_shows_table(void)
{
    const char *text = read_readme();
    for (int s = 0; s < STATE_DONE; s++) {
        char expected[512];
        print_row((enum p2p_state)s, expected, sizeof(expected));
        if (!strstr(text, expected))
            printf("src/p2p/README.md does not contain this line:\n%s", expected);
        EXPECT(strstr(text, expected) != NULL);
    }
}

/* Only debug builds check transitions. */
static void test_invalid_transition_aborts(void)
{
#ifdef FISHPLATE_DEBUG_BUILD
    for (int from = 0; from < STATES; from++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            static struct p2p_request r;
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            if (!freopen("/dev/null", "w", stderr))
                _exit(4);
            r.state = (uint8_t)from;
            request_change_state(&r, (enum p2p_state)from); /* no state may follow itself */
            _exit(0);
        }
        int status = 0;
        EXPECT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
#endif
}

int main(void)
{
    TEST_RUN(test_every_state_is_reached_and_left);
    TEST_RUN(test_readme_shows_table);
    TEST_RUN(test_invalid_transition_aborts);
    return test_result();
}
