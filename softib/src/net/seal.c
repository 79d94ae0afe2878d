/* seal.c: computes and checks the seals of datagrams.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/seal.h"
#include "net/frame.h"
#include "net/key.h"
#include <endian.h>
#include <string.h>
#include <time.h>

/* Number of senders, of all nodes, whose sequence numbers are remembered. A repeated datagram of a sender
 * that is no longer remembered may be accepted. */
#define SENDERS 4096u
#define PROBES  8u
/* Largest accepted distance behind the newest number: more packets than a socket holds. */
#define WINDOW 8192u

struct sender {
    uint32_t id; /* node << 16 | slot; 0: free (slot 0 does not exist) */
    uint64_t instance;
    uint64_t newest;
    uint64_t seen[WINDOW / 64]; /* bit n % WINDOW: number n, of the newest WINDOW ones */
};

static struct sender senders[SENDERS];

static void seal_compute_code(const uint8_t *seal, const uint8_t *head, const struct iovec *iov, int n,
                              uint64_t *code)
{
    struct sip s;
    key_copy_siphash(&s);
    sip_add(&s, head, FRAME_BYTES);
    sip_add(&s, seal, SEAL_BYTES - 8);
    for (int i = 0; i < n; i++)
        sip_add(&s, iov[i].iov_base, iov[i].iov_len);
    *code = htobe64(sip_end(&s));
}

uint64_t seal_new_instance(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void seal_create(uint64_t instance, uint64_t number, const uint8_t *head, const struct iovec *iov, int n,
                 uint8_t out[SEAL_BYTES])
{
    uint64_t v[2] = {htobe64(instance), htobe64(number)}, code;
    memcpy(out, v, 16);
    seal_compute_code(out, head, iov, n, &code);
    memcpy(out + 16, &code, 8);
}

bool seal_is_valid(const uint8_t seal[SEAL_BYTES], const uint8_t *head, const uint8_t *payload, size_t len)
{
    struct iovec iov = {(void *)(uintptr_t)payload, len};
    uint64_t code;
    seal_compute_code(seal, head, &iov, 1, &code);
    return secret_equal(&code, seal + 16, 8);
}

static struct sender *seal_find_sender(uint32_t id)
{
    uint32_t at = id * 2654435761u >> 20;
    for (unsigned i = 0; i < PROBES; i++) {
        struct sender *s = &senders[(at + i) % SENDERS];
        if (s->id == id || !s->id)
            return s;
    }
    struct sender *s = &senders[at % SENDERS];
    s->id = 0;
    return s;
}

static void seal_advance(struct sender *s, uint64_t number)
{
    uint64_t step = number - s->newest;
    if (step >= WINDOW)
        memset(s->seen, 0, sizeof(s->seen));
    for (uint64_t n = s->newest + 1; step < WINDOW && n <= number; n++)
        s->seen[n % WINDOW / 64] &= ~(1ull << n % 64);
    s->newest = number;
}

bool seal_is_not_replayed(const uint8_t seal[SEAL_BYTES], uint32_t node, uint32_t slot)
{
    uint64_t v[2];
    memcpy(v, seal, 16);
    uint64_t instance = be64toh(v[0]), number = be64toh(v[1]);
    struct sender *s = seal_find_sender(node << 16 | slot);
    if (s->id && instance < s->instance)
        return false; /* datagram of an earlier process in this slot */
    if (!s->id || instance > s->instance)
        *s = (struct sender){.id = node << 16 | slot, .instance = instance, .newest = number};
    else if (number > s->newest)
        seal_advance(s, number);
    else if (s->newest - number >= WINDOW || s->seen[number % WINDOW / 64] >> number % 64 & 1)
        return false;
    s->seen[number % WINDOW / 64] |= 1ull << number % 64;
    return true;
}
