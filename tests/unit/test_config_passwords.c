/*
 * config/secret.h: the passwords of nodes come from separate files.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/secret.h"
#include "tests/runner.h"
#include "tests/unit/configs.h"

const struct runner_settings runner_settings = {.setup = configs_open, .teardown = configs_close};

static const char with_secret[] =
    "nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", username: u, password_file: secret}\n";

TEST(password_is_read_from_its_file_without_the_newline)
{
    configs_write("secret", "s3cret\n");
    struct config *config = configs_accept(with_secret);
    ck_assert_str_eq(config->nodes[2].password, "s3cret");
    ck_assert_str_eq(config->nodes[2].username, "u");
    config_free(config);
    configs_write("secret", "no line feed");
    config = configs_accept(with_secret);
    ck_assert_str_eq(config->nodes[2].password, "no line feed");
    config_free(config);
}

/* With LoadCredential=secret:PATH, systemd puts the password into the directory that
 * $CREDENTIALS_DIRECTORY names, as the file "secret". */
TEST(password_may_be_a_systemd_credential)
{
    configs_write("secret", "hunter2\n");
    setenv("CREDENTIALS_DIRECTORY", configs_folder(), 1);
    struct config *config = configs_accept(
        "nodes:\n" NODE("a") ", password_file: \"${CREDENTIALS_DIRECTORY}/secret\"}\n" NODE(
            "b") "}\n" NODE("c") "}\n");
    ck_assert_str_eq(config->nodes[0].password, "hunter2");
    config_free(config);
    unsetenv("CREDENTIALS_DIRECTORY");
    configs_refuse(
        "nodes:\n" NODE("a") ", password_file: \"${CREDENTIALS_DIRECTORY}/secret\"}\n" NODE(
            "b") "}\n" NODE("c") "}\n",
        "f:2:46: the environment variable CREDENTIALS_DIRECTORY is not set\n");
}

TEST(password_length_is_limited)
{
    char large[SECRET_MAX + 8];
    memset(large, 'x', sizeof(large));
    large[SECRET_MAX] = '\n';
    configs_write_bytes("secret", large, SECRET_MAX + 1);
    struct config *config = configs_accept(with_secret);
    ck_assert_uint_eq(strlen(config->nodes[2].password), SECRET_MAX);
    config_free(config);
    configs_write_bytes("secret", large, SECRET_MAX + 2);
    configs_refuse(with_secret, "f:4:59: nodes.password_file: secret is longer than 1024 bytes\n");
    large[SECRET_MAX] = 'x';
    for (size_t len = SECRET_MAX + 1; len <= sizeof(large); len++) {
        configs_write_bytes("secret", large, len);
        configs_refuse(with_secret,
                       "f:4:59: nodes.password_file: secret is longer than 1024 bytes\n");
    }
}

TEST(empty_or_binary_password_is_refused)
{
    static const char empty[] =
        "f:4:59: nodes.password_file: secret is empty; write the secret into it\n";
    static const char binary[] = "f:4:59: nodes.password_file: secret contains more than one line, "
                                 "or a NUL byte; write only the secret into it\n";
    configs_write("secret", "");
    configs_refuse(with_secret, empty);
    configs_write("secret", "\n");
    configs_refuse(with_secret, empty);
    configs_write_bytes("secret", "a\0b", 3);
    configs_refuse(with_secret, binary);
    configs_write("secret", "a\nb\n");
    configs_refuse(with_secret, binary);
}

TEST(pipe_as_a_password_file_is_refused_without_blocking)
{
    ck_assert_int_eq(mkfifo("secret", 0600), 0);
    configs_refuse(with_secret, "f:4:59: nodes.password_file: secret is not a regular file\n");
}

/* The file's mode decides, even if root runs the test and may read any file. */
TEST(password_file_open_to_others_causes_a_warning)
{
    static const char warning[] = "f:4:59: warning: nodes.password_file: secret is readable or "
                                  "writable by every user; chmod 640 or 600\n";
    static const mode_t modes[] = {0644, 0604, 0602, 0666};
    configs_write("secret", "s3cret\n");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        ck_assert_int_eq(chmod("secret", modes[i]), 0);
        struct config *config = configs_read(with_secret);
        ck_assert_ptr_nonnull(config);
        ck_assert_str_eq(configs_report(), warning);
        ck_assert_str_eq(config->nodes[2].password, "s3cret");
        config_free(config);
    }
    ck_assert_int_eq(chmod("secret", 0640), 0);
    config_free(configs_accept(with_secret));
}

TEST(username_has_no_spaces)
{
    configs_write("secret", "x");
    configs_refuse("nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", username: \"u v\","
                                                                        " password_file: secret}\n",
                   "f:4:41: nodes.username: \"u v\" is not a Redis user name; write 1 to 256 "
                   "characters without spaces\n");
    configs_refuse("nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", username: \"\xc3\xa4\","
                                                                        " password_file: secret}\n",
                   "f:4:41: nodes.username: \"\\xc3\\xa4\" is not a Redis user name; write 1 to "
                   "256 characters without spaces\n");
}
