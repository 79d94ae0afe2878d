/* lab.h: commands of the laboratory, which is a program and a package of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_LAB_H
#define FP_TOOLS_LAB_H

/* `fishplate lab ...`: becomes `fishplate-lab ...`. */
int command_lab(int argc, char **argv);
/* Runs a command of the laboratory under its former name in this tool: argv[0] is the command. */
int command_forward_to_lab(int argc, char **argv);

#endif
