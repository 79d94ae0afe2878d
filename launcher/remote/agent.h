/* agent.h: the part of mpiexec that runs on other hosts. It is the same program with a hidden option, started
 * by a remote shell. It connects back, proves that it knows the cookie it read from standard input, lets the
 * other end prove the same, and only then takes orders.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_AGENT_H
#define FP_LAUNCHER_AGENT_H

/* argv: AGENT_OPTION addresses port number; the number is its host's, or AGENT_BY_NAME where one command
 * starts all agents and Slurm tells each the name of its node. */
#define AGENT_OPTION  "--fishplate-agent"
#define AGENT_BY_NAME "by-name"

int agent_main(int argc, char **argv);

#endif
