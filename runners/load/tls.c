#include "runners/load/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/mem.h"

#define PIECE_MAX (1 << 30) /* bytes of one call of the library */

struct wb_tls {
    SSL_CTX *ctx;
};

struct wb_tls_conn {
    SSL *ssl;
};

/* The oldest error of the library in words; the others are thrown away. */
static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_get_error());

    ERR_clear_error();
    return text ? text : "the connection was closed";
}

static int use_ca(struct wb_tls *t, const char *ca, struct wb_err *err)
{
    if (strcmp(ca, "unchecked") == 0)
        return 0;
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    if (strcmp(ca, "system") != 0 && access(ca, R_OK) < 0)
        return wb_fail_sys(err, errno,
                           "tls: reading '%s' (a file of certificates, or system or "
                           "unchecked)",
                           ca);
    if (strcmp(ca, "system") == 0 ? SSL_CTX_set_default_verify_paths(t->ctx) == 1
                                  : SSL_CTX_load_verify_locations(t->ctx, ca, NULL) == 1)
        return 0;
    return wb_fail(err, WB_INVALID,
                   "tls: '%s' is not a file of certificates, system or unchecked: %s", ca,
                   reason());
}

static int use_cert(struct wb_tls *t, const char *cert, struct wb_err *err)
{
    if (cert && access(cert, R_OK) < 0)
        return wb_fail_sys(err, errno, "tls-cert: reading '%s'", cert);
    if (!cert || (SSL_CTX_use_certificate_chain_file(t->ctx, cert) == 1 &&
                  SSL_CTX_use_PrivateKey_file(t->ctx, cert, SSL_FILETYPE_PEM) == 1))
        return 0;
    return wb_fail(err, WB_INVALID, "tls-cert: '%s' does not hold a certificate and its key: %s",
                   cert, reason());
}

int wb_tls_new(const char *ca, const char *cert, struct wb_tls **out, struct wb_err *err)
{
    struct wb_tls *t = wb_calloc(1, sizeof(*t));
    int rc;

    t->ctx = SSL_CTX_new(TLS_client_method());
    if (!t->ctx)
        abort(); /* out of memory */
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
    /* A request buffer may grow and move between two tries to send it. */
    SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_OFF);
    rc = use_ca(t, ca, err);
    if (rc == 0)
        rc = use_cert(t, cert, err);
    if (rc < 0) {
        wb_tls_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void wb_tls_free(struct wb_tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    free(t);
}

struct wb_tls_conn *wb_tls_begin(const struct wb_tls *t, int fd, const char *name)
{
    struct wb_tls_conn *c = wb_calloc(1, sizeof(*c));
    const char *colon = strrchr(name, ':');
    bool brackets = name[0] == '[' && colon && colon[-1] == ']';
    WB_AUTO_FREE char *host = brackets ? wb_strndup(name + 1, (size_t)(colon - name) - 2)
                              : colon  ? wb_strndup(name, (size_t)(colon - name))
                                       : wb_strdup(name);

    c->ssl = SSL_new(t->ctx);
    if (!c->ssl || SSL_set_fd(c->ssl, fd) != 1)
        abort(); /* out of memory */
    SSL_set_connect_state(c->ssl);
    /* An address is compared as one and is no name to be sent ahead. */
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), host) != 1) {
        (void)SSL_set1_host(c->ssl, host);
        (void)SSL_set_tlsext_host_name(c->ssl, host);
    }
    ERR_clear_error();
    return c;
}

void wb_tls_end(struct wb_tls_conn *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    free(c);
}

static bool waits(const struct wb_tls_conn *c, int rc)
{
    int why = SSL_get_error(c->ssl, rc);

    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

int wb_tls_handshake(struct wb_tls_conn *c, struct wb_err *err)
{
    int rc = SSL_do_handshake(c->ssl);
    long verified;

    if (rc == 1)
        return 1;
    if (waits(c, rc))
        return 0;
    verified = SSL_get_verify_result(c->ssl);
    if (verified != X509_V_OK && SSL_get_verify_mode(c->ssl) != SSL_VERIFY_NONE) {
        ERR_clear_error();
        return wb_fail(err, WB_PROTOCOL, "the server's certificate is not accepted: %s",
                       X509_verify_cert_error_string(verified));
    }
    return wb_fail(err, WB_PROTOCOL, "TLS handshake: %s", reason());
}

ssize_t wb_tls_send(struct wb_tls_conn *c, const void *data, size_t n)
{
    size_t done = 0;

    while (done < n) {
        size_t left = n - done;
        int rc =
            SSL_write(c->ssl, (const char *)data + done, left > PIECE_MAX ? PIECE_MAX : (int)left);
        if (rc > 0) {
            done += (size_t)rc;
            continue;
        }
        if (done > 0)
            break; /* what is the matter is said the next time */
        errno = waits(c, rc) ? EAGAIN : EPIPE;
        ERR_clear_error();
        return -1;
    }
    return (ssize_t)done;
}

ssize_t wb_tls_recv(struct wb_tls_conn *c, void *data, size_t n)
{
    size_t done = 0;

    while (done < n) {
        size_t left = n - done;
        int rc = SSL_read(c->ssl, (char *)data + done, left > PIECE_MAX ? PIECE_MAX : (int)left);
        if (rc > 0) {
            done += (size_t)rc;
            continue;
        }
        if (done > 0)
            break;
        if (waits(c, rc)) {
            errno = EAGAIN;
            return -1;
        }
        /* The end, with or without a farewell: operations in flight are lost in both cases. */
        ERR_clear_error();
        return 0;
    }
    return (ssize_t)done;
}
