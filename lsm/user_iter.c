// SPDX-License-Identifier: BSD-2-Clause
#include "lsm/user_iter.h"

#include "base/mem.h"
#include "lsm/fold.h"
#include "lsm/merge_iter.h"
#include "lsm/overlay.h"
#include "lsm/range_window.h"

enum {
    STEPS = 8,    // versions of a key that are stepped over before a seek
    STRETCH = 16, // covered keys in a row before a seek
};
#define NEWEST UINT64_MAX // no trailer stands before it
#define OLDEST ((uint64_t)0)

struct tm_user_iter {
    tm_iter *m;
    tm_order order;
    uint64_t seq, overlay_seq, now_ms;
    const _Atomic(const tamis_merger *) *merger;
    bool has_lower, has_upper;
    tm_buf lower, upper;
    tm_range_window window;

    bool valid, back, ahead; // U1
    int status;
    tamis_error error;
    tm_slice key, value; // what is shown
    tm_buf saved_key, saved_value;
    tm_fold fold;
    uint32_t stretch; // keys hidden by range deletes, in a row
    uint64_t skipped;
};

// ---- Bounds ------------------------------------------------------------------------------------

static int raise_lower(tm_user_iter *it, tm_slice s)
{
    if (it->has_lower && tm_order_compare(&it->order, s, tm_buf_slice(&it->lower)) <= 0) {
        return TAMIS_OK;
    }
    it->has_lower = true;
    return tm_buf_set(&it->lower, s);
}

static int sink_upper(tm_user_iter *it, tm_slice s)
{
    if (it->has_upper && tm_order_compare(&it->order, s, tm_buf_slice(&it->upper)) >= 0) {
        return TAMIS_OK;
    }
    it->has_upper = true;
    return tm_buf_set(&it->upper, s);
}

// Keys that begin with prefix: [prefix, what follows all of them).
static int bound_by_prefix(tm_user_iter *it, tm_slice prefix)
{
    TM_TRY(raise_lower(it, prefix));
    size_t n = prefix.len;
    while (n > 0 && prefix.data[n - 1] == 0xff) n--;
    if (n == 0) return TAMIS_OK; // nothing follows them
    tm_buf end;
    tm_buf_init(&end);
    int st = tm_buf_append(&end, prefix.data, n);
    if (st == TAMIS_OK) {
        end.data[n - 1]++;
        st = sink_upper(it, tm_buf_slice(&end));
    }
    tm_buf_deinit(&end);
    return st;
}

static bool below_lower(const tm_user_iter *it, tm_slice key)
{
    return it->has_lower && tm_order_compare(&it->order, key, tm_buf_slice(&it->lower)) < 0;
}

static bool beyond_upper(const tm_user_iter *it, tm_slice key)
{
    return it->has_upper && tm_order_compare(&it->order, key, tm_buf_slice(&it->upper)) >= 0;
}

// ---- Failures and ends -------------------------------------------------------------------------

static void end_walk(tm_user_iter *it)
{
    it->valid = false;
    it->status = TAMIS_OK;
}

static void fail(tm_user_iter *it, int status)
{
    it->valid = false;
    it->status = status;
}

// The merged iterator is not valid: it stands at its end, or has failed.
static void end_as_merged(tm_user_iter *it)
{
    if (it->m->status != TAMIS_OK) it->error = it->m->error;
    fail(it, it->m->status);
}

static bool save_key(tm_user_iter *it, tm_slice key)
{
    if (TM_LIKELY(tm_buf_set(&it->saved_key, key) == TAMIS_OK)) return true;
    fail(it, tm_fail_nomem(&it->error));
    return false;
}

static bool is_saved(const tm_user_iter *it, tm_slice key)
{
    return tm_order_compare(&it->order, key, tm_buf_slice(&it->saved_key)) == 0;
}

// An entry of a kind that is kept for later ends the walk.
static void refuse(tm_user_iter *it, tm_kind kind)
{
    bool known = kind == TM_KIND_VALUE_POINTER || kind == TM_KIND_DELETE_EXPIRY;
    if (known) {
        fail(it, tm_fail(&it->error, TAMIS_UNSUPPORTED,
                         "the key's entry is of kind %u, which this version cannot read",
                         (unsigned)kind));
    } else {
        fail(it,
             tm_fail_corrupt(&it->error, 0, 0, "an entry of the unknown kind %u", (unsigned)kind));
    }
}

// ---- Entries -----------------------------------------------------------------------------------

static inline bool is_seen(const tm_user_iter *it, uint64_t seq)
{
    return seq <= it->seq || (seq > TM_OVERLAY_SEQ && seq <= it->overlay_seq);
}

// To search with for the newest version that is seen.
static uint64_t newest_seen(const tm_user_iter *it)
{
    return tm_trailer_seek(TM_MAX(it->seq, it->overlay_seq));
}

static bool is_delete(tm_kind kind)
{
    return kind == TM_KIND_DELETE || kind == TM_KIND_SINGLE_DELETE;
}

// Takes the expiry off the value. False: the value is gone, or (status set) the entry is damaged.
static bool outlives(tm_user_iter *it, tm_slice *value)
{
    uint64_t expires_ms;
    if (tm_expiry_take(value, &expires_ms)) return expires_ms > it->now_ms;
    fail(it, tm_fail_corrupt(&it->error, 0, 0, "an expiring entry has no time of expiry"));
    return false;
}

static bool finish_fold(tm_user_iter *it, const tm_slice *base)
{
    const tamis_merger *m =
        it->merger ? atomic_load_explicit(it->merger, memory_order_acquire) : NULL;
    int st = tm_fold_finish(&it->fold, m, tm_buf_slice(&it->saved_key), base, &it->error);
    if (st != TAMIS_OK) fail(it, st);
    return st == TAMIS_OK;
}

// The merged iterator stands at the newest version of the saved key that is seen, a merge operand.
// Walks on to what it is to be merged with, and makes the value (in fold.out). False: it failed.
static bool fold_versions(tm_user_iter *it)
{
    tm_iter *m = it->m;
    tm_fold_clear(&it->fold);
    for (; m->valid && is_saved(it, m->key); m->ops->next(m)) {
        uint64_t seq = tm_trailer_seq(m->trailer);
        tm_kind kind = tm_trailer_kind(m->trailer);
        tm_slice value = m->value;
        if (!is_seen(it, seq)) continue;
        if (tm_range_window_cover(&it->window, m->key) > seq || is_delete(kind)) break;
        if (kind == TM_KIND_PUT) return finish_fold(it, &value);
        if (kind == TM_KIND_PUT_EXPIRY) {
            if (outlives(it, &value)) return finish_fold(it, &value);
            if (it->status != TAMIS_OK) return false;
            break;
        }
        if (kind != TM_KIND_MERGE) {
            refuse(it, kind);
            return false;
        }
        if (tm_fold_add(&it->fold, value) != TAMIS_OK) {
            fail(it, tm_fail_nomem(&it->error));
            return false;
        }
    }
    if (!m->valid && m->status != TAMIS_OK) {
        end_as_merged(it);
        return false;
    }
    return finish_fold(it, NULL);
}

// ---- Range deletes -----------------------------------------------------------------------------

// In a long covered stretch: if the entry at hand comes from an older source than the range delete,
// so does all that this source has in the window, and it is passed over at once.
static bool skip_covered(tm_user_iter *it)
{
    const tm_range_window *w = &it->window;
    if (it->stretch < STRETCH || w->child >= tm_merge_iter_child(it->m)) return false;
    if (it->back) {
        tm_merge_iter_skip_child(it->m, w->has_low ? &w->low : NULL, true);
    } else {
        tm_merge_iter_skip_child(it->m, w->has_high ? &w->high : NULL, false);
    }
    it->skipped++;
    return true;
}

// ---- Forward -----------------------------------------------------------------------------------

// Steps to the next entry; every so often, where the same key goes on, seeks to trailer of it
// instead. The key is the saved one. *steps counts.
static void step_or_seek(tm_user_iter *it, uint64_t trailer, uint32_t *steps)
{
    it->skipped++;
    if (++*steps > STEPS) {
        *steps = 0;
        it->m->ops->seek(it->m, tm_buf_slice(&it->saved_key), trailer);
    } else {
        it->m->ops->next(it->m);
    }
}

// An entry that is newer than the view.
static bool pass_newer(tm_user_iter *it, uint32_t *steps)
{
    if (*steps == 0 || !is_saved(it, it->m->key)) {
        if (!save_key(it, it->m->key)) return false;
        *steps = 0;
    }
    bool beyond = tm_trailer_seq(it->m->trailer) > it->overlay_seq;
    step_or_seek(it, beyond ? newest_seen(it) : tm_trailer_seek(it->seq), steps);
    return true;
}

static void show(tm_user_iter *it, tm_slice key, tm_slice value)
{
    it->key = key;
    it->value = value;
    it->valid = true;
    it->status = TAMIS_OK;
}

// Shows the first visible entry at or behind the merged iterator's place. With passing, the
// versions of the saved key are passed over.
static void walk_forward(tm_user_iter *it, bool passing)
{
    tm_iter *m = it->m;
    uint32_t steps = 0;
    it->back = it->ahead = false;
    it->status = TAMIS_OK;
    while (m->valid) {
        if (passing && is_saved(it, m->key)) {
            step_or_seek(it, OLDEST, &steps);
            continue;
        }
        if (passing) steps = 0;
        passing = false;
        if (beyond_upper(it, m->key)) {
            end_walk(it);
            return;
        }
        uint64_t seq = tm_trailer_seq(m->trailer);
        if (!is_seen(it, seq)) {
            if (!pass_newer(it, &steps)) return;
            continue;
        }
        tm_kind kind = tm_trailer_kind(m->trailer);
        bool covered = tm_range_window_cover(&it->window, m->key) > seq;
        if (covered) {
            if (skip_covered(it)) continue;
            it->stretch++;
        } else if (TM_LIKELY(kind == TM_KIND_PUT)) {
            it->stretch = 0;
            show(it, m->key, m->value);
            return;
        } else if (kind == TM_KIND_MERGE) {
            if (save_key(it, m->key) && fold_versions(it)) {
                it->stretch = 0;
                it->ahead = true;
                show(it, tm_buf_slice(&it->saved_key), tm_buf_slice(&it->fold.out));
            }
            return;
        } else if (kind == TM_KIND_PUT_EXPIRY) {
            tm_slice value = m->value;
            if (outlives(it, &value)) {
                it->stretch = 0;
                show(it, m->key, value);
                return;
            }
            if (it->status != TAMIS_OK) return;
        } else if (!is_delete(kind)) {
            refuse(it, kind);
            return;
        }
        if (!save_key(it, m->key)) return;
        passing = true;
        steps = 0;
        it->skipped++;
        m->ops->next(m);
    }
    end_as_merged(it);
}

// ---- Back --------------------------------------------------------------------------------------

typedef struct version { // of the saved key
    bool found;
    uint64_t seq;
    tm_kind kind;
} version;

// Keeps the entry at hand as the version that is seen, so far.
static bool keep_version(tm_user_iter *it, uint64_t cover, version *v)
{
    if (v->found) it->skipped++;
    *v = (version){true, tm_trailer_seq(it->m->trailer), tm_trailer_kind(it->m->trailer)};
    if ((v->kind != TM_KIND_PUT && v->kind != TM_KIND_PUT_EXPIRY) || v->seq < cover) return true;
    if (TM_LIKELY(tm_buf_set(&it->saved_value, it->m->value) == TAMIS_OK)) return true;
    fail(it, tm_fail_nomem(&it->error));
    return false;
}

// The merged iterator stands at the oldest version of the saved key. Finds the newest that is seen,
// and leaves the merged iterator before all of them. False where that fails.
static bool find_version(tm_user_iter *it, uint64_t cover, version *v)
{
    tm_iter *m = it->m;
    tm_slice key = tm_buf_slice(&it->saved_key);
    uint32_t steps = 0;
    v->found = false;
    for (; m->valid && is_saved(it, m->key); m->ops->prev(m)) {
        bool seen = is_seen(it, tm_trailer_seq(m->trailer));
        if (seen && !keep_version(it, cover, v)) return false;
        if (!seen) it->skipped++;
        if (!seen && it->overlay_seq == 0) break; // all that follow are newer still
        if (++steps > STEPS) break;
    }
    if (m->valid && is_saved(it, m->key)) { // there may be more: ask for the newest
        if (steps > STEPS) {
            m->ops->seek(m, key, newest_seen(it));
            while (m->valid && is_saved(it, m->key) && !is_seen(it, tm_trailer_seq(m->trailer))) {
                m->ops->next(m); // of the store's, newer than the view, below the overlay's
            }
            if (m->valid && is_saved(it, m->key) && !keep_version(it, cover, v)) return false;
        }
        if (m->status == TAMIS_OK) m->ops->seek_before(m, key, NEWEST);
    }
    if (m->valid || m->status == TAMIS_OK) return true;
    end_as_merged(it);
    return false;
}

// The newest version that is seen is an operand: makes the value, and goes back before the key.
static bool fold_back(tm_user_iter *it, const version *v)
{
    tm_iter *m = it->m;
    tm_slice key = tm_buf_slice(&it->saved_key);
    m->ops->seek(m, key, tm_trailer(v->seq, v->kind));
    if (m->status == TAMIS_OK && !fold_versions(it)) return false;
    if (m->status == TAMIS_OK) m->ops->seek_before(m, key, NEWEST);
    if (m->valid || m->status == TAMIS_OK) return true;
    end_as_merged(it);
    return false;
}

// Shows the version of the saved key, walking back. False: it is none that is shown, or (status
// set) that failed.
static bool show_version(tm_user_iter *it, const version *v)
{
    tm_slice value = tm_buf_slice(&it->saved_value);
    if (v->kind == TM_KIND_MERGE) {
        if (!fold_back(it, v)) return false;
        value = tm_buf_slice(&it->fold.out);
    } else if (v->kind == TM_KIND_PUT_EXPIRY) {
        if (!outlives(it, &value)) return false;
    } else if (v->kind != TM_KIND_PUT) {
        if (!is_delete(v->kind)) refuse(it, v->kind);
        return false;
    }
    it->stretch = 0;
    show(it, tm_buf_slice(&it->saved_key), value);
    return true;
}

// Shows the last visible key at or before the merged iterator's place.
static void walk_back(tm_user_iter *it)
{
    tm_iter *m = it->m;
    version v;
    it->back = true;
    it->ahead = false;
    it->status = TAMIS_OK;
    while (m->valid) {
        if (below_lower(it, m->key)) {
            end_walk(it);
            return;
        }
        uint64_t cover = tm_range_window_cover(&it->window, m->key);
        if (cover > tm_trailer_seq(m->trailer) && skip_covered(it)) continue;
        if (!save_key(it, m->key) || !find_version(it, cover, &v)) return;
        if (!v.found) continue;
        if (cover > v.seq)
            it->stretch++;
        else if (show_version(it, &v) || it->status != TAMIS_OK)
            return;
        it->skipped++;
    }
    end_as_merged(it);
}

// ---- Movements ---------------------------------------------------------------------------------

void tm_user_iter_first(tm_user_iter *it)
{
    it->stretch = 0;
    if (it->has_lower) {
        it->m->ops->seek(it->m, tm_buf_slice(&it->lower), NEWEST);
    } else {
        it->m->ops->first(it->m);
    }
    walk_forward(it, false);
}

void tm_user_iter_last(tm_user_iter *it)
{
    it->stretch = 0;
    if (it->has_upper) {
        it->m->ops->seek_before(it->m, tm_buf_slice(&it->upper), NEWEST);
    } else {
        it->m->ops->last(it->m);
    }
    walk_back(it);
}

void tm_user_iter_seek(tm_user_iter *it, tm_slice key)
{
    if (below_lower(it, key)) {
        tm_user_iter_first(it);
        return;
    }
    it->stretch = 0;
    if (!save_key(it, key)) return; // it may be the iterator's own
    it->m->ops->seek(it->m, tm_buf_slice(&it->saved_key), newest_seen(it));
    walk_forward(it, false);
}

void tm_user_iter_seek_for_prev(tm_user_iter *it, tm_slice key)
{
    if (beyond_upper(it, key)) {
        tm_user_iter_last(it);
        return;
    }
    it->stretch = 0;
    if (!save_key(it, key)) return; // it may be the iterator's own
    it->m->ops->seek_before(it->m, tm_buf_slice(&it->saved_key), OLDEST);
    walk_back(it);
}

void tm_user_iter_next(tm_user_iter *it)
{
    if (!it->valid) return;
    bool passing = true; // older versions of the key may follow
    if (it->back) {      // U1: before the saved key
        it->stretch = 0;
        it->m->ops->seek(it->m, tm_buf_slice(&it->saved_key), OLDEST);
    } else if (!it->ahead) {
        passing = tm_trailer_seq(it->m->trailer) != 0; // 0: there is none older
        if (passing && !save_key(it, it->key)) return;
        it->m->ops->next(it->m);
    }
    walk_forward(it, passing);
}

void tm_user_iter_prev(tm_user_iter *it)
{
    if (!it->valid) return;
    if (!it->back) {
        if (!it->ahead && !save_key(it, it->key)) return;
        it->stretch = 0;
        it->m->ops->seek_before(it->m, tm_buf_slice(&it->saved_key), NEWEST);
    }
    walk_back(it);
}

// ---- Life --------------------------------------------------------------------------------------

static int set_options(tm_user_iter *it, const tm_user_iter_options *o, tamis_error *err)
{
    it->order = o->order;
    it->seq = o->seq;
    it->overlay_seq = o->overlay_seq;
    it->now_ms = o->now_ms;
    it->merger = o->merger;
    it->has_lower = it->has_upper = false;
    if (o->has_prefix && !o->order.bytewise) {
        return tm_fail(err, TAMIS_INVALID, "a prefix needs the bytewise order, not \"%s\"",
                       tm_order_name(&o->order));
    }
    int st = TAMIS_OK;
    if (o->has_lower) st = raise_lower(it, o->lower);
    if (st == TAMIS_OK && o->has_upper) st = sink_upper(it, o->upper);
    if (st == TAMIS_OK && o->has_prefix) st = bound_by_prefix(it, o->prefix);
    return st == TAMIS_OK ? st : tm_fail_nomem(err);
}

void tm_user_iter_rest(tm_user_iter *it)
{
    tm_iter_rest(it->m);
    end_walk(it);
}

int tm_user_iter_restart(tm_user_iter *it, const tm_user_iter_options *options, tamis_error *err)
{
    it->back = it->ahead = false;
    it->stretch = 0;
    it->skipped = 0;
    it->window.seq = options->seq;
    it->window.overlay_seq = options->overlay_seq;
    it->window.known = false;
    return set_options(it, options, err);
}

int tm_user_iter_create(tm_iter *merged, const tm_user_iter_options *options, tm_user_iter **out,
                        tamis_error *err)
{
    *out = NULL;
    tm_user_iter *it = tm_calloc(1, sizeof(*it));
    if (it == NULL) {
        tm_iter_destroy(merged);
        return tm_fail_nomem(err);
    }
    it->m = merged;
    int st = set_options(it, options, err);
    if (st == TAMIS_OK) {
        st = tm_range_window_init(&it->window, &options->order, options->seq, options->overlay_seq,
                                  options->ranges, options->range_children, options->range_count,
                                  err);
    }
    if (st != TAMIS_OK) {
        tm_user_iter_destroy(it);
        return st;
    }
    *out = it;
    return TAMIS_OK;
}

void tm_user_iter_destroy(tm_user_iter *it)
{
    if (it == NULL) return;
    tm_iter_destroy(it->m);
    tm_range_window_deinit(&it->window);
    tm_fold_deinit(&it->fold);
    tm_buf_deinit(&it->saved_value);
    tm_buf_deinit(&it->saved_key);
    tm_buf_deinit(&it->upper);
    tm_buf_deinit(&it->lower);
    tm_free(it);
}

bool tm_user_iter_valid(const tm_user_iter *it)
{
    return it->valid;
}

tm_slice tm_user_iter_key(const tm_user_iter *it)
{
    return it->key;
}

tm_slice tm_user_iter_value(const tm_user_iter *it)
{
    return it->value;
}

int tm_user_iter_status(const tm_user_iter *it, tamis_error *err)
{
    if (it->status == TAMIS_OK) return TAMIS_OK;
    if (err != NULL) *err = it->error;
    return it->status;
}

uint64_t tm_user_iter_skipped(const tm_user_iter *it)
{
    return it->skipped;
}
