/*
 * TLS 1.2 or later on a connected socket, by OpenSSL. Built without it,
 * tls_prepare fails and says how to get it; all else here is then never called.
 *
 * The certificate of the server must come from an authority in $CALYX_TLS_CA,
 * or that the system trusts, and be for the very host that was connected to:
 * each node of a cluster is verified by its own name or IP address. No session
 * is resumed, so no connection relies on what another one verified.
 */
#ifndef CALYX_TOOL_TLS_H
#define CALYX_TOOL_TLS_H

#include <sys/types.h>

#include "server/connection.h"

#ifdef CALYX_HAVE_OPENSSL
#define BY_OPENSSL
#else
#define BY_OPENSSL __attribute__((weak)) /* not there, and never called */
#endif

struct tls;

/* Of a server that answers without TLS. */
#define NO_TLS_HERE \
    "the server does not speak TLS at this port; redis:// is without"

/* Before anything else. Fails if the environment names files that are no use.
 */
void tls_prepare(void);

/* The socket must be non-blocking, and remains the caller's. Why a call below
 * failed is written to `trouble`. tls_free says goodbye first, if there is
 * anybody. */
BY_OPENSSL struct tls *tls_new(int fd, const char *host,
                               struct trouble *trouble);
BY_OPENSSL void tls_free(struct tls *tls);

/* Like recv and send: the number of bytes, 0 at the end, or -1. `events` is
 * then what to poll for before the same call is made again; 0: the connection
 * broke. tls_shake returns 1 when the server is verified; nothing can be sent
 * before. */
BY_OPENSSL ssize_t tls_shake(struct tls *tls, short *events);
BY_OPENSSL ssize_t tls_receive(struct tls *tls, void *bytes, size_t size,
                               short *events);
BY_OPENSSL ssize_t tls_send(struct tls *tls, const void *bytes, size_t size,
                            short *events);

#endif
