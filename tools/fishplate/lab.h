/* lab.h: forwards commands to the laboratory (fishplate-lab), a separate program and package.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_LAB_H
#define FP_TOOLS_LAB_H

/* Handles `fishplate lab ...`: executes `fishplate-lab ...`. */
int command_lab(int argc, char **argv);
/* Runs a command of the laboratory under its former name in this tool: argv[0] is the command. */
int command_forward_to_lab(int argc, char **argv);

#endif
