#include "server/tls.h"

#ifdef CALYX_HAVE_OPENSSL

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct tls {
    SSL *ssl;
    char *host;
    struct trouble *trouble;
    bool was_requested; /* our certificate */
    bool was_heard;     /* the server has sent a byte of a reply */
    bool is_open;       /* verified, and not broken */
};

static void note(struct tls *t, bool is_final, const char *format, ...)
    PRINTS(3, 4);
static void note(struct tls *t, bool is_final, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(t->trouble->text, sizeof t->trouble->text, format, values);
    va_end(values);
    t->trouble->is_final = is_final;
}

static const char *reason(void) {
    const char *const text = ERR_reason_error_string(ERR_peek_error());
    return text ? text : "OpenSSL does not say why";
}

/* ---- Why a certificate is not taken -------------------------------------- */

enum { NAME_SIZE = 160 };

static void read_text(BIO *from, char *text) {
    const int size = BIO_read(from, text, NAME_SIZE - 1);
    text[size > 0 ? size : 0] = '\0';
    BIO_free(from);
}

/* Whom it names: "DNS:cache.example, IP Address:10.0.0.7", or "CN = Our CA". */
static void names_of(const X509 *certificate, char *text) {
    BIO *const bio = BIO_new(BIO_s_mem());
    const int at = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1);
    if (at >= 0)
        X509V3_EXT_print(bio, X509_get_ext(certificate, at), 0, 0);
    else
        X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0,
                           XN_FLAG_ONELINE);
    read_text(bio, text);
}

static void issuer_of(const X509 *certificate, char *text) {
    BIO *const bio = BIO_new(BIO_s_mem());
    X509_NAME_print_ex(bio, X509_get_issuer_name(certificate), 0,
                       XN_FLAG_ONELINE);
    read_text(bio, text);
}

static void date_text(const ASN1_TIME *time, char *text) {
    struct tm tm = {0};
    ASN1_TIME_to_tm(time, &tm);
    strftime(text, NAME_SIZE, "%Y-%m-%d %H:%M UTC", &tm);
}

static void describe(struct tls *t, int error, const X509 *certificate) {
    const char *const ca = getenv("CALYX_TLS_CA");
    char names[NAME_SIZE], more[NAME_SIZE];
    names_of(certificate, names);
    switch (error) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            note(t, true, "the certificate is for %s, expected %.200s", names,
                 t->host);
            break;
        case X509_V_ERR_CERT_HAS_EXPIRED:
            date_text(X509_get0_notAfter(certificate), more);
            note(t, true, "the certificate for %s expired on %s", names, more);
            break;
        case X509_V_ERR_CERT_NOT_YET_VALID:
            date_text(X509_get0_notBefore(certificate), more);
            note(t, true, "the certificate for %s is valid from %s on", names,
                 more);
            break;
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            issuer_of(certificate, more);
            note(
                t, true,
                "the certificate for %s is signed by %s, an unknown authority; "
                "CALYX_TLS_CA names a file or folder of those to trust, and is "
                "now %.100s",
                names, more,
                ca ? ca : "not set: the authorities of the system");
            break;
        default:
            note(t, true, "the certificate for %s is not valid: %s", names,
                 X509_verify_cert_error_string(error));
    }
}

/* Looks on: what OpenSSL decided stays decided. */
static int hear_verdict(int is_good, X509_STORE_CTX *store) {
    if (is_good) return is_good;
    const SSL *const ssl =
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const X509 *const current = X509_STORE_CTX_get_current_cert(store);
    describe(SSL_get_app_data(ssl), X509_STORE_CTX_get_error(store),
             current ? current : X509_STORE_CTX_get0_cert(store));
    return is_good;
}

/* ---- Files that the environment names ------------------------------------ */

static int no_pass_phrase(char *buffer, int size, int writes, void *context) {
    (void)buffer, (void)size, (void)writes, (void)context;
    return -1; /* push may run unattended */
}

static void load_authorities(SSL_CTX *context) {
    const char *const ca = getenv("CALYX_TLS_CA");
    struct stat about;
    if (!ca) {
        if (!SSL_CTX_set_default_verify_paths(context))
            fail("TLS: the authorities that the system trusts: %s", reason());
        return;
    }
    if (stat(ca, &about) != 0) fail_os(ca, "read this CALYX_TLS_CA");
    const bool is_folder = S_ISDIR(about.st_mode);
    if (!SSL_CTX_load_verify_locations(context, is_folder ? NULL : ca,
                                       is_folder ? ca : NULL))
        fail_at(ca, 0, "CALYX_TLS_CA: expected certificates as PEM: %s",
                reason());
}

static void load_certificate(SSL_CTX *context) {
    const char *const certificate = getenv("CALYX_TLS_CERT");
    const char *key = getenv("CALYX_TLS_KEY");
    if (!certificate && key)
        fail("CALYX_TLS_KEY is set, and CALYX_TLS_CERT is not: the key belongs "
             "to a certificate");
    if (!certificate) return;
    if (!key) key = certificate; /* both may be in one file */
    SSL_CTX_set_default_passwd_cb(context, no_pass_phrase);
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        fail_at(certificate, 0,
                "CALYX_TLS_CERT: expected a certificate as PEM: %s", reason());
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        fail_at(key, 0,
                "CALYX_TLS_KEY: expected the key of CALYX_TLS_CERT, as PEM "
                "without a pass phrase: %s",
                reason());
}

/* ---- What all connections share ------------------------------------------ */

/* Called when the server wants a client certificate; there need not be one. */
static int note_asked(SSL *ssl, void *context) {
    (void)context;
    struct tls *const t = SSL_get_app_data(ssl);
    t->was_requested = true;
    return 1;
}

static SSL_CTX *new_context(void) {
    SSL_CTX *const context = SSL_CTX_new(TLS_client_method());
    if (!context) fail("TLS: %s", reason());
    /* The system's settings may require more. */
    if (SSL_CTX_get_min_proto_version(context) < TLS1_2_VERSION &&
        !SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION))
        fail("TLS: %s", reason());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, hear_verdict);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_CTX_set_cert_cb(context, note_asked, NULL);
    load_authorities(context);
    load_certificate(context);
    return context;
}

static SSL_CTX *shared;

void tls_prepare(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    ERR_clear_error();
    if (!shared) shared = new_context();
    pthread_mutex_unlock(&lock);
}

/* ---- One connection ----------------------------------------------------- */

/* An empty name would have OpenSSL verify none. Only names are sent (SNI). */
static bool set_host(SSL *ssl, const char *host) {
    struct in6_addr bytes;
    X509_VERIFY_PARAM *const wanted = SSL_get0_param(ssl);
    if (!*host) return false;
    if (inet_pton(AF_INET, host, &bytes) == 1 ||
        inet_pton(AF_INET6, host, &bytes) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(wanted, host);
    X509_VERIFY_PARAM_set_hostflags(wanted,
                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(wanted, host, 0) &&
           SSL_set_tlsext_host_name(ssl, host);
}

struct tls *tls_new(int fd, const char *host, struct trouble *trouble) {
    struct tls *const t = alloc_memory(sizeof *t);
    ERR_clear_error();
    *t = (struct tls){.ssl = SSL_new(shared), .trouble = trouble};
    if (!t->ssl || !SSL_set_fd(t->ssl, fd) || !SSL_set_app_data(t->ssl, t))
        fail("TLS: %s", reason());
    if (!set_host(t->ssl, host))
        fail("TLS: '%s' is no name that a certificate can have", host);
    t->host = copy_text(host);
    return t;
}

void tls_free(struct tls *t) {
    ERR_clear_error();
    if (t->is_open) SSL_shutdown(t->ssl); /* once: the answer is not awaited */
    SSL_free(t->ssl);
    free(t->host);
    free(t);
}

static const struct {
    int reason;
    const char *text;
} meanings[] = {
    {SSL_R_WRONG_VERSION_NUMBER, NO_TLS_HERE},
    {SSL_R_UNSUPPORTED_PROTOCOL, "the server speaks no TLS 1.2 or later"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION,
     "the server does not speak a version of TLS that calyx may use"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA,
     "the server does not know the authority of the certificate in "
     "CALYX_TLS_CERT"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
     "the server says that the certificate in CALYX_TLS_CERT has expired"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
     "the server does not take the certificate in CALYX_TLS_CERT"},
};

static bool is_end(int why) {
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
    return why == SSL_R_UNEXPECTED_EOF_WHILE_READING;
#else
    return why == 0; /* before OpenSSL 3 it was no error of its own */
#endif
}

/* In TLS 1.3 the server looks at our certificate when we take ourselves for
 * welcome, and what it says of it is often lost with the connection. */
static const char *hint(const struct tls *t) {
    if (t->was_heard || !t->was_requested) return "";
    return SSL_get_certificate(t->ssl)
               ? "; does it trust the certificate in CALYX_TLS_CERT?"
               : "; it requires a certificate of the client, too: "
                 "CALYX_TLS_CERT and CALYX_TLS_KEY name files";
}

static void note_error(struct tls *t, int system_error) {
    const unsigned long error = ERR_peek_error();
    const int why = ERR_GET_REASON(error);
    if (t->trouble->is_final) return; /* the verdict on a certificate */
    for (size_t i = 0; error && i < sizeof meanings / sizeof *meanings; i++)
        if (why == meanings[i].reason) {
            note(t, true, "%s", meanings[i].text);
            return;
        }
    if (error && !is_end(why))
        note(t, why >= SSL_AD_REASON_OFFSET, "TLS: %s%s", reason(), hint(t));
    else
        note(t, false, "%s%s",
             system_error && !error ? strerror(system_error)
                                    : "the server closed the connection",
             hint(t));
}

static ssize_t outcome(struct tls *t, int result, size_t moved, short *events) {
    int system_error = errno;
    *events = 0;
    if (result == 1) return (ssize_t)moved;
    switch (SSL_get_error(t->ssl, result)) {
        case SSL_ERROR_WANT_READ: *events = POLLIN; return -1;
        case SSL_ERROR_WANT_WRITE: *events = POLLOUT; return -1;
        case SSL_ERROR_ZERO_RETURN: system_error = 0; break;
        default: t->is_open = false;
    }
    note_error(t, system_error);
    return -1;
}

/* Earlier errors must not be mistaken for the errors of the next call. */
static void forget_errors(void) {
    ERR_clear_error();
    errno = 0;
}

ssize_t tls_shake(struct tls *t, short *events) {
    forget_errors();
    const ssize_t result = outcome(t, SSL_connect(t->ssl), 1, events);
    /* OpenSSL has seen to it; a second look costs nothing. */
    if (result == 1 && SSL_get_verify_result(t->ssl) != X509_V_OK)
        fail("TLS: the server was not verified");
    t->is_open = result == 1;
    return result;
}

ssize_t tls_receive(struct tls *t, void *bytes, size_t size, short *events) {
    size_t moved = 0;
    forget_errors();
    const int result = SSL_read_ex(t->ssl, bytes, size, &moved);
    if (moved) t->was_heard = true;
    return outcome(t, result, moved, events);
}

ssize_t tls_send(struct tls *t, const void *bytes, size_t size, short *events) {
    size_t moved = 0;
    forget_errors();
    const int result = SSL_write_ex(t->ssl, bytes, size, &moved);
    return outcome(t, result, moved, events);
}

#else

void tls_prepare(void) {
    fail("rediss:// is TLS, and this calyx was built without OpenSSL; install "
         "it (Debian: libssl-dev) and build again");
}

#endif
