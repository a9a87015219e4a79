/*
 * Makes the certificates and keys that tests use.
 */
#ifndef TESTS_CERTS_H
#define TESTS_CERTS_H

struct certs_plan {
    const char *name;   /* base name of the files: NAME.crt, NAME.key */
    const char *issuer; /* name of the signing CA; NULL: self-signed, and a CA itself */
    const char *common; /* common name; NULL: same as name; "": none */
    const char *names;  /* subject alternative names, "DNS:localhost,IP:127.0.0.1"; NULL: none */
    /* Start and end of the validity, in seconds from now. Both 0: from an hour ago to tomorrow. */
    long from_s;
    long until_s;
};

/* Writes NAME.crt and NAME.key to the folder, where the files of the issuer must exist. */
void certs_make(const char *folder, const struct certs_plan *plan);

/* Writes the key of NAME to NAME.locked, encrypted with the password "hunter2hunter2". */
void certs_lock_key(const char *folder, const char *name);

#endif
