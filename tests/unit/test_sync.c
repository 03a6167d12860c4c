// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sync.h"

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

typedef struct table { // two players, one ball
    tm_mutex m;
    tm_cond turned;
    int turn, rounds;
} table;

static void table_init(table *t)
{
    tamis_error err;
    *t = (table){.rounds = 0};
    ck_assert_int_eq(tm_mutex_init(&t->m, &err), TAMIS_OK);
    ck_assert_int_eq(tm_cond_init(&t->turned, &err), TAMIS_OK);
}

static void table_deinit(table *t)
{
    tm_cond_deinit(&t->turned);
    tm_mutex_deinit(&t->m);
}

static void play(table *t, int me)
{
    for (int i = 0; i < 1000; i++) {
        tm_mutex_lock(&t->m);
        while (t->turn != me) tm_cond_wait(&t->turned, &t->m);
        t->turn = !me;
        t->rounds++;
        tm_cond_signal(&t->turned);
        tm_mutex_unlock(&t->m);
    }
}

static void *second_player(void *arg)
{
    play(arg, 1);
    return arg;
}

START_TEST(turns_alternate)
{
    table t;
    tamis_error err;
    table_init(&t);
    tm_thread other;
    ck_assert_int_eq(tm_thread_start(&other, second_player, &t, "a name that is too long", &err),
                     TAMIS_OK);
    play(&t, 0);
    tm_thread_join(&other);
    ck_assert_int_eq(t.rounds, 2000);
    table_deinit(&t);
}
END_TEST

static void *try_it(void *arg)
{
    table *t = arg;
    t->turn = tm_mutex_trylock(&t->m);
    return NULL;
}

START_TEST(trylock_does_not_wait)
{
    table t;
    tamis_error err;
    table_init(&t);
    tm_thread other;
    tm_mutex_lock(&t.m);
    ck_assert_int_eq(tm_thread_start(&other, try_it, &t, "try", &err), TAMIS_OK);
    tm_thread_join(&other);
    ck_assert_int_eq(t.turn, 0);
    tm_mutex_unlock(&t.m);
    ck_assert(tm_mutex_trylock(&t.m));
    tm_mutex_unlock(&t.m);
    table_deinit(&t);
}
END_TEST

START_TEST(time_passes)
{
    static const uint64_t waits[] = {0, 1, 999, 30000};
    table t;
    table_init(&t);
    tm_mutex_lock(&t.m);
    for (size_t i = 0; i < TM_COUNT(waits); i++) {
        uint64_t begin = now_us(), end = begin + waits[i];
        while (tm_cond_wait_us(&t.turned, &t.m, waits[i])) { // woken for nothing is allowed
            ck_assert_uint_lt(now_us(), end + 1000000);
        }
        ck_assert_uint_ge(now_us(), end);
        ck_assert_uint_lt(now_us(), end + 5000000);
    }
    tm_mutex_unlock(&t.m);
    table_deinit(&t);
}
END_TEST

static void *wake(void *arg)
{
    table *t = arg;
    tm_mutex_lock(&t->m);
    t->turn = 1;
    tm_cond_broadcast(&t->turned);
    tm_mutex_unlock(&t->m);
    return NULL;
}

// Times that end after the end of all clocks must not turn into "now".
START_TEST(a_long_wait_is_ended_by_a_signal)
{
    static const uint64_t waits[] = {60000000, (uint64_t)INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < TM_COUNT(waits); i++) {
        table t;
        tamis_error err;
        table_init(&t);
        tm_thread other;
        tm_mutex_lock(&t.m);
        ck_assert_int_eq(tm_thread_start(&other, wake, &t, "wake", &err), TAMIS_OK);
        while (t.turn == 0) ck_assert(tm_cond_wait_us(&t.turned, &t.m, waits[i]));
        tm_mutex_unlock(&t.m);
        tm_thread_join(&other);
        table_deinit(&t);
    }
}
END_TEST

static void *look_at_mask(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return NULL;
}

START_TEST(signals_of_the_host_are_not_taken)
{
    sigset_t before, after, inside;
    tamis_error err;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigfillset(&inside);
    tm_thread t;
    ck_assert_int_eq(tm_thread_start(&t, look_at_mask, &inside, "mask", &err), TAMIS_OK);
    tm_thread_join(&t);
    static const int blocked[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE};
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < TM_COUNT(blocked); i++) ck_assert(sigismember(&inside, blocked[i]) == 1);
    for (size_t i = 0; i < TM_COUNT(open); i++) ck_assert(sigismember(&inside, open[i]) == 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int sig = 1; sig < 32; sig++) {
        ck_assert_int_eq(sigismember(&before, sig), sigismember(&after, sig));
    }
}
END_TEST

START_TEST(a_child_is_another_process)
{
    uint64_t parent = tm_process_id_first();
    ck_assert_uint_eq(parent, tm_process_id_first());
    ck_assert_uint_eq(parent, tm_process_id());
    pid_t child = fork();
    if (child == 0) _exit(tm_process_id() != parent && tm_process_id_first() != parent ? 0 : 1);
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(parent, tm_process_id());
}
END_TEST

START_TEST(there_is_a_processor)
{
    ck_assert_uint_ge(tm_cpu_count(), 1);
    long configured = sysconf(_SC_NPROCESSORS_CONF);
    ck_assert_uint_le(tm_cpu_count(), (uint32_t)configured);
    tm_thread_yield();
    tm_cpu_relax();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sync");
    TCase *t = tcase_create("sync");
    tcase_set_timeout(t, 30);
    tcase_add_test(t, turns_alternate);
    tcase_add_test(t, trylock_does_not_wait);
    tcase_add_test(t, time_passes);
    tcase_add_test(t, a_long_wait_is_ended_by_a_signal);
    tcase_add_test(t, signals_of_the_host_are_not_taken);
    tcase_add_test(t, a_child_is_another_process);
    tcase_add_test(t, there_is_a_processor);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
