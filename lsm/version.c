// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/version.h"

#include "base/mem.h"

// ---- Table references --------------------------------------------------------------------------

int tm_file_ref_create(tm_table *table, tm_dead_files *dead, tm_file_ref **out, tamis_error *err)
{
    tm_file_ref *f = tm_calloc(1, sizeof *f);
    if (f == NULL) {
        tm_table_close(table);
        return tm_fail_nomem(err);
    }
    atomic_init(&f->refs, 1);
    atomic_init(&f->dropped, false);
    f->table = table;
    f->meta = tm_table_get_meta(table);
    f->dead = dead;
    uint64_t half = f->meta->half_ms, all = f->meta->expires_ms;
    f->look_ms = half != 0 && (all == 0 || half < all) ? half : all;
    *out = f;
    return TAMIS_OK;
}

void tm_file_ref_get(tm_file_ref *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
}

void tm_file_ref_put(tm_file_ref *f)
{
    if (f == NULL) return;
    // Release: what this holder did to the table happens before whoever frees it (acquire below).
    if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1) return;
    tm_dead_files *dead = f->dead;
    tm_file_ref *head = atomic_load_explicit(&dead->head, memory_order_relaxed);
    do {
        f->next_dead = head;
    } while (!atomic_compare_exchange_weak_explicit(&dead->head, &head, f, memory_order_release,
                                                    memory_order_relaxed));
    dead->wake(dead->wake_ctx);
}

// ---- Versions ----------------------------------------------------------------------------------

int tm_version_create(const tm_order *order, tm_version **out, tamis_error *err)
{
    tm_version *v = tm_calloc(1, sizeof *v);
    if (v == NULL) return tm_fail_nomem(err);
    atomic_init(&v->refs, 1);
    v->order = *order;
    *out = v;
    return TAMIS_OK;
}

void tm_version_ref(tm_version *v)
{
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
}

void tm_version_unref(tm_version *v)
{
    if (v == NULL) return;
    if (atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1) return;
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        tm_level *level = &v->levels[l];
        for (uint32_t i = 0; i < level->count; i++) tm_file_ref_put(level->files[i]);
        tm_free(level->files);
        tm_free(level->tables);
        tm_free(level->heads);
    }
    tm_free(v);
}

static tm_slice smallest_of(const tm_table_meta *m)
{
    return tm_buf_slice(&m->smallest);
}
static tm_slice largest_of(const tm_table_meta *m)
{
    return tm_buf_slice(&m->largest);
}

int tm_file_locate(const tm_order *order, const tm_table_meta *m, tm_slice key)
{
    if (tm_order_compare(order, key, smallest_of(m)) < 0) return -1;
    if (m->flags & TM_TABLE_UNBOUNDED) return 0;
    int c = tm_order_compare(order, key, largest_of(m));
    if (c > 0 || (c == 0 && (m->flags & TM_TABLE_LARGEST_EXCLUSIVE))) return 1;
    return 0;
}

bool tm_file_overlaps(const tm_order *order, const tm_file_ref *f, const tm_slice *smallest,
                      const tm_slice *largest)
{
    if (smallest != NULL && tm_file_locate(order, f->meta, *smallest) > 0) return false;
    return largest == NULL || tm_order_compare(order, *largest, smallest_of(f->meta)) >= 0;
}

// The first table of a sorted level that does not end before key.
static uint32_t first_not_before(const tm_version *v, uint32_t l, tm_slice key)
{
    const tm_level *level = &v->levels[l];
    uint32_t low = 0, high = level->count;
    if (v->order.bytewise) { // narrow by heads first: integers side by side, no table is touched
        uint64_t head = tm_head64(key.data, key.len);
        uint32_t n = high;
        while (n > 0) {
            uint32_t half = n / 2;
            bool before = level->heads[low + half] < head;
            low = before ? low + half + 1 : low;
            n = before ? n - half - 1 : half;
        }
        if (low == high || level->heads[low] > head) return low;
    }
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (tm_file_locate(&v->order, level->files[mid]->meta, key) > 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int64_t tm_version_find(const tm_version *v, uint32_t l, tm_slice key)
{
    uint32_t i = first_not_before(v, l, key);
    if (i == v->levels[l].count) return -1;
    return tm_file_locate(&v->order, v->levels[l].files[i]->meta, key) < 0 ? -1 : (int64_t)i;
}

void tm_version_overlap(const tm_version *v, uint32_t l, const tm_slice *smallest,
                        const tm_slice *largest, uint32_t *first, uint32_t *last)
{
    const tm_level *level = &v->levels[l];
    *first = smallest ? first_not_before(v, l, *smallest) : 0;
    uint32_t low = *first, high = level->count;
    while (largest != NULL && low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (tm_order_compare(&v->order, smallest_of(level->files[mid]->meta), *largest) <= 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    *last = largest ? low : level->count;
}

uint64_t tm_version_bytes(const tm_version *v)
{
    uint64_t sum = 0;
    for (uint32_t l = 0; l < TM_LEVELS; l++) sum += v->levels[l].bytes;
    return sum;
}

uint64_t tm_version_tables(const tm_version *v)
{
    uint64_t sum = 0;
    for (uint32_t l = 0; l < TM_LEVELS; l++) sum += v->levels[l].count;
    return sum;
}

// ---- Applying an edit --------------------------------------------------------------------------

static bool is_dropped(const tm_version_drop *drops, size_t n, uint32_t level, uint64_t number)
{
    for (size_t i = 0; i < n; i++) {
        if (drops[i].level == level && drops[i].number == number) return true;
    }
    return false;
}

// Level 0: newest first. A table's place follows from its sequence numbers, then its number.
static bool newer(const tm_table_meta *a, const tm_table_meta *b)
{
    if (a->max_seq != b->max_seq) return a->max_seq > b->max_seq;
    return a->number > b->number;
}

static bool goes_before(const tm_order *order, uint32_t l, const tm_file_ref *a,
                        const tm_file_ref *b)
{
    if (l == 0) return newer(a->meta, b->meta);
    return tm_order_compare(order, smallest_of(a->meta), smallest_of(b->meta)) < 0;
}

static void place(const tm_order *order, tm_level *level, uint32_t l, tm_file_ref *f)
{
    uint32_t i = level->count++;
    while (i > 0 && goes_before(order, l, f, level->files[i - 1])) {
        level->files[i] = level->files[i - 1];
        i--;
    }
    level->files[i] = f;
    tm_file_ref_get(f);
}

static int check_level(const tm_version *v, uint32_t l, tamis_error *err)
{
    const tm_level *level = &v->levels[l];
    for (uint32_t i = 1; l > 0 && i < level->count; i++) {
        const tm_table_meta *a = level->files[i - 1]->meta, *b = level->files[i]->meta;
        if (tm_file_locate(&v->order, a, smallest_of(b)) <= 0) {
            return tm_fail_corrupt(err, b->number, 0,
                                   "tables %06llu and %06llu of level %u overlap",
                                   (unsigned long long)a->number, (unsigned long long)b->number, l);
        }
    }
    return TAMIS_OK;
}

static int fill_level(const tm_version *base, const tm_version_drop *drops, size_t drop_count,
                      const tm_version_add *adds, size_t add_count, tm_version *v, uint32_t l,
                      tamis_error *err)
{
    const tm_level *old = &base->levels[l];
    tm_level *level = &v->levels[l];
    size_t room = old->count;
    for (size_t i = 0; i < add_count; i++) room += adds[i].level == l;
    if (room == 0) return TAMIS_OK;
    level->files = tm_calloc(room, sizeof *level->files);
    level->tables = tm_calloc(room, sizeof *level->tables);
    level->heads = tm_calloc(room, sizeof *level->heads);
    if (level->files == NULL || level->tables == NULL || level->heads == NULL) {
        return tm_fail_nomem(err);
    }
    for (uint32_t i = 0; i < old->count; i++) { // in order already: appended without a search
        if (is_dropped(drops, drop_count, l, old->files[i]->meta->number)) continue;
        level->files[level->count++] = old->files[i];
        tm_file_ref_get(old->files[i]);
    }
    for (size_t i = 0; i < add_count; i++) {
        if (adds[i].level == l) place(&v->order, level, l, adds[i].file);
    }
    for (uint32_t i = 0; i < level->count; i++) {
        const tm_table_meta *m = level->files[i]->meta;
        level->tables[i] = level->files[i]->table;
        level->heads[i] =
            m->flags & TM_TABLE_UNBOUNDED ? UINT64_MAX : tm_head64(m->largest.data, m->largest.len);
        level->bytes += m->file_bytes;
        v->entries += m->entries;
        v->has_ranges = v->has_ranges || m->range_deletes > 0;
    }
    if (level->count > 0) v->levels_used = l + 1;
    return check_level(v, l, err);
}

static bool holds(const tm_version *v, uint32_t l, uint64_t number)
{
    for (uint32_t i = 0; i < v->levels[l].count; i++) {
        if (v->levels[l].files[i]->meta->number == number) return true;
    }
    return false;
}

int tm_version_apply(const tm_version *base, const tm_version_drop *drops, size_t drop_count,
                     const tm_version_add *adds, size_t add_count, tm_version **out,
                     tamis_error *err)
{
    tm_version *v = NULL;
    int st = TAMIS_OK;
    for (size_t i = 0; i < drop_count; i++) {
        if (drops[i].level >= TM_LEVELS || !holds(base, drops[i].level, drops[i].number)) {
            return tm_fail_corrupt(err, drops[i].number, 0,
                                   "table %06llu is to leave level %u, but is not there",
                                   (unsigned long long)drops[i].number, drops[i].level);
        }
    }
    for (size_t i = 0; i < add_count; i++) {
        uint64_t number = adds[i].file->meta->number;
        if (holds(base, adds[i].level, number) &&
            !is_dropped(drops, drop_count, adds[i].level, number)) {
            return tm_fail_corrupt(err, number, 0, "table %06llu is already in level %u",
                                   (unsigned long long)number, adds[i].level);
        }
    }
    TM_GOTO(tm_version_create(&base->order, &v, err));
    for (uint32_t l = 0; l < TM_LEVELS; l++) {
        TM_GOTO(fill_level(base, drops, drop_count, adds, add_count, v, l, err));
    }
    *out = v;
    v = NULL;
out:
    tm_version_unref(v);
    return st;
}
