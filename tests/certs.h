/*
 * Certificates for tests, made on the spot.
 */
#ifndef TESTS_CERTS_H
#define TESTS_CERTS_H

struct certs_plan {
    const char *name;   /* of the files in the folder: NAME.crt, NAME.key */
    const char *issuer; /* the name of another; NULL: it signs itself, and is a CA */
    const char *common; /* its common name; NULL: the name; "": none */
    const char *names;  /* the alternative ones, "DNS:localhost,IP:127.0.0.1"; NULL: none */
    long from_s;        /* its time, from now; both 0: from an hour ago to tomorrow */
    long until_s;
};

void certs_make(const char *folder, const struct certs_plan *plan);

/* The same key, but encrypted with a password: NAME.locked. */
void certs_lock_key(const char *folder, const char *name);

#endif
