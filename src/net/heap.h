/* heap.h: keeps large blocks that a program allocates and frees repeatedly in the process. By default malloc
 * maps each such block and unmaps it on free; its registration is lost and must be made again (buffer reuse,
 * [Liu04 4.1.2]). Blocks in the heap are also adjacent, so that the kernel can put them into huge pages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_HEAP_H
#define FP_NET_HEAP_H

/* Asks malloc to keep what is freed, unless FISHPLATE_MALLOC says to leave it or the user has set malloc's
 * own variables. */
void heap_keep(void);

#endif
