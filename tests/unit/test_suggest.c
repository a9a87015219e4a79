/*
 * protocol/suggest.h: the known word that is most similar to a mistyped one.
 */
#include "protocol/suggest.h"

#include "tests/runner.h"

TEST(suggestion_is_similar_or_none)
{
    static const char *const words[] = {"max_ttl", "min_validity", "log",
                                        "a_word_far_longer_than_any_key_could_be_at_all", NULL};
    ck_assert_str_eq(suggest_nearest("max_tll", words), "max_ttl");
    ck_assert_str_eq(suggest_nearest("maxttl", words), "max_ttl");
    ck_assert_str_eq(suggest_nearest("mn_validity", words), "min_validity");
    ck_assert_str_eq(suggest_nearest("lgo", words), "log");
    ck_assert_ptr_null(suggest_nearest("x", words));
    ck_assert_ptr_null(suggest_nearest("port", words));
    ck_assert_ptr_null(suggest_nearest("a_word_far_longer_than_any_key_could_be_at_all", words));
}

TEST(word_with_half_of_its_letters_changed_is_not_similar)
{
    static const char *const words[] = {"help", "wait", "release", NULL};
    ck_assert_ptr_null(suggest_nearest("hold", words));
    ck_assert_str_eq(suggest_nearest("hlep", words), "help");
    ck_assert_str_eq(suggest_nearest("wai", words), "wait");
    ck_assert_str_eq(suggest_nearest("waitt", words), "wait");
    ck_assert_str_eq(suggest_nearest("relaese", words), "release");
    ck_assert_str_eq(suggest_nearest("rlease", words), "release");
}

TEST(word_is_suggested_for_its_beginning)
{
    static const char *const words[] = {"password_file", "passworx", "url", NULL};
    ck_assert_str_eq(suggest_nearest("pass", words), "password_file");
    ck_assert_str_eq(suggest_nearest("password", words), "passworx");
    ck_assert_ptr_null(suggest_nearest("pas", words));
}

TEST(first_of_equally_similar_words_is_suggested)
{
    static const char *const words[] = {"lock", "locks", "lack", NULL};
    ck_assert_str_eq(suggest_nearest("lick", words), "lock");
    ck_assert_str_eq(suggest_nearest("lokc", words), "lock");
    ck_assert_str_eq(suggest_nearest("lockss", words), "locks");
}

TEST(swapped_letters_count_as_one_mistake)
{
    static const char *const words[] = {"TRAP", "ILL", "TERM", "KILL", NULL};
    ck_assert_str_eq(suggest_nearest("TREM", words), "TERM");
    ck_assert_str_eq(suggest_nearest("KLIL", words), "KILL");
    ck_assert_str_eq(suggest_nearest("EKILLL", words), "KILL");
}
