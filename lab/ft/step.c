/* step.c: `step PROGRAM [ARGUMENT ...]` runs a rank. On rank 0 it prints the number of instructions that the
 * program's first thread executes between two SIGUSR2 that the program raises. It single-steps rank 0, which
 * takes some microseconds an instruction, while the other ranks run at full speed. Messages for rank 0 have
 * therefore always arrived already, and the count hardly varies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void step_exec_program(char **argv)
{
    execv(argv[1], argv + 1);
    perror(argv[1]);
    _exit(127);
}

/* Single-steps the process between two SIGUSR2 and prints the number of instructions; returns the exit
 * status of the process. */
static int step_count_instructions(pid_t pid)
{
    int status;
    long steps = 0;
    bool counting = false;
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        const int signal = WSTOPSIG(status);
        if (signal == SIGUSR2) {
            if (counting)
                printf("%ld\n", steps);
            counting = !counting;
            steps = 0;
        }
        steps += signal == SIGTRAP;
        ptrace(counting ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL,
               (void *)(long)(signal == SIGUSR2 || signal == SIGTRAP ? 0 : signal));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("PMI_RANK");
    if (argc < 2 || !rank) {
        fprintf(stderr, "step: start it with mpiexec and give it a program\n");
        return 2;
    }
    if (strcmp(rank, "0") != 0)
        step_exec_program(argv);
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        step_exec_program(argv);
    }
    return pid < 0 ? 1 : step_count_instructions(pid);
}
