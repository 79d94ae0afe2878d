/* heap.h: large blocks that a program allocates and frees over and over should stay in the process. By itself
 * malloc takes each from the kernel and gives it back, and with it goes its registration, which must be made
 * anew (buffer reuse, [Liu04 4.1.2]). Blocks of the heap also lie side by side, where the kernel
 * can put them into huge pages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_HEAP_H
#define FP_NET_HEAP_H

/* Asks malloc to keep what is freed, unless FISHPLATE_MALLOC says to leave it or the user has set malloc's
 * own variables. */
void heap_keep(void);

#endif
