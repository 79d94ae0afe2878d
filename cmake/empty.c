/* empty.c: an empty source file of the shared library, which consists of the static libraries of the layers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
typedef int empty;
