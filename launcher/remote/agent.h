/* agent.h: the part of mpiexec that runs on other hosts. It is the same program with a hidden option, started
 * by a remote shell. It connects back, proves that it knows the cookie it read from standard input, verifies
 * that the other end knows it, and only then accepts frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_AGENT_H
#define FP_LAUNCHER_AGENT_H

/* argv: AGENT_OPTION addresses port number; the number identifies the agent's host, or is AGENT_BY_NAME if
 * one command starts all agents (Slurm) and each uses its node name. */
#define AGENT_OPTION  "--fishplate-agent"
#define AGENT_BY_NAME "by-name"

int agent_main(int argc, char **argv);

#endif
