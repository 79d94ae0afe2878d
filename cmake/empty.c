/* empty.c: the shared library is made of the layers; the linker wants one file of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
typedef int empty;
