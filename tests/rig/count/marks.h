/* marks.h: two instructions without an effect, used by no other program, by which a program in the guest
 * marks for the plugin where counting begins and ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RIG_MARKS_H
#define FP_RIG_MARKS_H

#define MARK_BEGIN 0x1
#define MARK_END   0x2

#ifdef __aarch64__ /* hint #(112 + mark) */
#define MARK_BYTES(mark) (0x1f | (((0x70 + mark) << 5) & 0xff)), (0x20 | ((0x70 + mark) >> 3)), 0x03, 0xd5
#else /* nop [rax + 0x7f465000 + mark] */
#define MARK_BYTES(mark) 0x0f, 0x1f, 0x80, mark, 0x50, 0x46, 0x7f
#endif

#endif
