// SPDX-License-Identifier: BSD-2-Clause

#include "lsm/edit.h"

#include "base/hash.h"
#include "base/mem.h"

enum tag { // docs/format.md
    TAG_STORE = 1,
    TAG_NEXT_FILE = 2,
    TAG_LAST_SEQ = 3,
    TAG_MIN_LOG = 4,
    TAG_FAMILY = 5,
    TAG_FAMILY_GONE = 6,
    TAG_IN_FAMILY = 7,
    TAG_TABLE_GONE = 8,
    TAG_TABLE = 9,
    TAG_LIVE_TABLES = 10,
    TAG_CHAIN = 11,
    TAG_OPTION = 12,
    TAG_CURSOR = 13,
    TAG_NEXT_FAMILY = 14,
    TAG_FLUSHED = 15
};

void tm_edit_init(tm_edit *e)
{
    memset(e, 0, sizeof *e);
}

void tm_edit_family_deinit(tm_edit_family *f)
{
    tm_buf_deinit(&f->name);
    tm_buf_deinit(&f->comparator);
    tm_buf_deinit(&f->merger);
}

void tm_edit_deinit(tm_edit *e)
{
    for (size_t i = 0; i < e->table_count; i++) tm_table_meta_deinit(&e->tables[i].meta);
    for (size_t i = 0; i < e->family_count; i++) tm_edit_family_deinit(&e->families[i]);
    for (size_t i = 0; i < e->cursor_count; i++) tm_buf_deinit(&e->cursors[i].key);
    for (size_t i = 0; i < e->option_count; i++) {
        tm_buf_deinit(&e->options[i].name);
        tm_buf_deinit(&e->options[i].value);
    }
    tm_free(e->tables);
    tm_free(e->families);
    tm_free(e->cursors);
    tm_free(e->flushed);
    tm_free(e->options);
    tm_edit_init(e);
}

// Room for one more item of the given size; NULL when memory ends. The new item is zeros.
static void *grow(void **items, size_t *count, size_t *cap, size_t item_bytes)
{
    if (*count == *cap) {
        size_t wanted = *cap ? *cap * 2 : 8;
        void *p = tm_realloc(*items, wanted * item_bytes);
        if (p == NULL) return NULL;
        *items = p;
        *cap = wanted;
    }
    void *item = (char *)*items + *count * item_bytes;
    memset(item, 0, item_bytes);
    (*count)++;
    return item;
}

static tm_edit_table *new_table(tm_edit *e, uint32_t family, uint32_t level, uint64_t number)
{
    void *items = e->tables;
    tm_edit_table *t = grow(&items, &e->table_count, &e->table_cap, sizeof *t);
    e->tables = items;
    if (t == NULL) return NULL;
    t->family = family;
    t->level = level;
    t->number = number;
    tm_table_meta_init(&t->meta);
    return t;
}

int tm_edit_add_table(tm_edit *e, uint32_t family, uint32_t level, const tm_table_meta *meta)
{
    tm_edit_table *t = new_table(e, family, level, meta->number);
    if (t == NULL) return TAMIS_NOMEM;
    t->add = true;
    int st = tm_table_meta_copy(&t->meta, meta);
    if (st != TAMIS_OK) e->table_count--;
    return st;
}

int tm_edit_drop_table(tm_edit *e, uint32_t family, uint32_t level, uint64_t number)
{
    return new_table(e, family, level, number) ? TAMIS_OK : TAMIS_NOMEM;
}

static tm_edit_family *new_family(tm_edit *e, uint32_t id)
{
    void *items = e->families;
    tm_edit_family *f = grow(&items, &e->family_count, &e->family_cap, sizeof *f);
    e->families = items;
    if (f != NULL) f->id = id;
    return f;
}

int tm_edit_add_family(tm_edit *e, uint32_t id, tm_slice name, tm_slice comparator, tm_slice merger)
{
    tm_edit_family *f = new_family(e, id);
    if (f == NULL) return TAMIS_NOMEM;
    TM_TRY(tm_buf_set(&f->name, name));
    TM_TRY(tm_buf_set(&f->comparator, comparator));
    return tm_buf_set(&f->merger, merger);
}

int tm_edit_drop_family(tm_edit *e, uint32_t id)
{
    tm_edit_family *f = new_family(e, id);
    if (f == NULL) return TAMIS_NOMEM;
    f->drop = true;
    return TAMIS_OK;
}

int tm_edit_set_flushed(tm_edit *e, uint32_t family, uint64_t seq)
{
    void *items = e->flushed;
    tm_edit_flushed *f = grow(&items, &e->flushed_count, &e->flushed_cap, sizeof *f);
    e->flushed = items;
    if (f == NULL) return TAMIS_NOMEM;
    *f = (tm_edit_flushed){family, seq};
    return TAMIS_OK;
}

int tm_edit_set_cursor(tm_edit *e, uint32_t family, uint32_t level, tm_slice key)
{
    void *items = e->cursors;
    tm_edit_cursor *c = grow(&items, &e->cursor_count, &e->cursor_cap, sizeof *c);
    e->cursors = items;
    if (c == NULL) return TAMIS_NOMEM;
    c->family = family;
    c->level = level;
    return tm_buf_set(&c->key, key);
}

int tm_edit_add_option(tm_edit *e, uint32_t family, tm_slice name, tm_slice value)
{
    void *items = e->options;
    tm_edit_option *o = grow(&items, &e->option_count, &e->option_cap, sizeof *o);
    e->options = items;
    if (o == NULL) return TAMIS_NOMEM;
    o->family = family;
    TM_TRY(tm_buf_set(&o->name, name));
    return tm_buf_set(&o->value, value);
}

// ---- Encoding ----------------------------------------------------------------------------------

static int put_tagged(tm_buf *out, enum tag tag, uint64_t v)
{
    TM_TRY(tm_buf_put_varint(out, tag));
    return tm_buf_put_varint(out, v);
}

static int encode_families(const tm_edit *e, tm_buf *out)
{
    for (size_t i = 0; i < e->family_count; i++) {
        const tm_edit_family *f = &e->families[i];
        if (f->drop) {
            TM_TRY(put_tagged(out, TAG_FAMILY_GONE, f->id));
            continue;
        }
        TM_TRY(put_tagged(out, TAG_FAMILY, f->id));
        TM_TRY(tm_buf_put_slice(out, tm_buf_slice(&f->name)));
        TM_TRY(tm_buf_put_slice(out, tm_buf_slice(&f->comparator)));
        TM_TRY(tm_buf_put_slice(out, tm_buf_slice(&f->merger)));
    }
    for (size_t i = 0; i < e->option_count; i++) {
        const tm_edit_option *o = &e->options[i];
        TM_TRY(put_tagged(out, TAG_OPTION, o->family));
        TM_TRY(tm_buf_put_slice(out, tm_buf_slice(&o->name)));
        TM_TRY(tm_buf_put_slice(out, tm_buf_slice(&o->value)));
    }
    return TAMIS_OK;
}

static int encode_table(const tm_edit_table *t, tm_buf *scratch, tm_buf *out)
{
    if (!t->add) {
        TM_TRY(put_tagged(out, TAG_TABLE_GONE, t->level));
        return tm_buf_put_varint(out, t->number);
    }
    TM_TRY(put_tagged(out, TAG_TABLE, t->level));
    tm_buf_clear(scratch);
    TM_TRY(tm_table_meta_encode(&t->meta, scratch));
    return tm_buf_put_slice(out, tm_buf_slice(scratch));
}

// The family that the fields behind belong to; *in_force is the one so far.
static int put_family(uint64_t *in_force, uint32_t family, tm_buf *out)
{
    if (*in_force == family) return TAMIS_OK;
    *in_force = family;
    return put_tagged(out, TAG_IN_FAMILY, family);
}

static int encode_tables(const tm_edit *e, tm_buf *scratch, tm_buf *out)
{
    uint64_t family = UINT64_MAX;
    for (size_t i = 0; i < e->table_count; i++) {
        TM_TRY(put_family(&family, e->tables[i].family, out));
        TM_TRY(encode_table(&e->tables[i], scratch, out));
    }
    for (size_t i = 0; i < e->flushed_count; i++) {
        TM_TRY(put_family(&family, e->flushed[i].family, out));
        TM_TRY(put_tagged(out, TAG_FLUSHED, e->flushed[i].seq));
    }
    for (size_t i = 0; i < e->cursor_count; i++) {
        const tm_edit_cursor *c = &e->cursors[i];
        TM_TRY(put_family(&family, c->family, out));
        TM_TRY(put_tagged(out, TAG_CURSOR, c->level));
        TM_TRY(tm_buf_put_slice(out, tm_buf_slice(&c->key)));
    }
    return TAMIS_OK;
}

static uint64_t chain_after(uint64_t before, const uint8_t *payload, size_t n)
{
    uint8_t previous[8];
    tm_put64(previous, before);
    return tm_checksum2(previous, sizeof previous, payload, n);
}

int tm_edit_encode(const tm_edit *e, uint64_t *chain, tm_buf *out)
{
    size_t begin = out->len;
    tm_buf scratch;
    tm_buf_init(&scratch);
    int st = TAMIS_OK;
    if (e->has_store) {
        TM_GOTO(tm_buf_put_varint(out, TAG_STORE));
        TM_GOTO(tm_buf_append(out, e->store_id, sizeof e->store_id));
        TM_GOTO(tm_buf_put64(out, e->hash_seed));
        TM_GOTO(tm_buf_put_varint(out, e->format_level));
    }
    if (e->has_next_file) TM_GOTO(put_tagged(out, TAG_NEXT_FILE, e->next_file));
    if (e->has_last_seq) TM_GOTO(put_tagged(out, TAG_LAST_SEQ, e->last_seq));
    if (e->has_min_log) TM_GOTO(put_tagged(out, TAG_MIN_LOG, e->min_log));
    if (e->has_next_family) TM_GOTO(put_tagged(out, TAG_NEXT_FAMILY, e->next_family));
    TM_GOTO(encode_families(e, out));
    TM_GOTO(encode_tables(e, &scratch, out));
    if (e->has_live_tables) TM_GOTO(put_tagged(out, TAG_LIVE_TABLES, e->live_tables));
    uint64_t next = chain_after(*chain, out->data + begin, out->len - begin);
    TM_GOTO(tm_buf_put_varint(out, TAG_CHAIN));
    TM_GOTO(tm_buf_put64(out, next));
    *chain = next;
out:
    tm_buf_deinit(&scratch);
    if (st != TAMIS_OK) out->len = begin;
    return st;
}

// ---- Decoding ----------------------------------------------------------------------------------

typedef struct decoder {
    tm_edit *e;
    tm_cursor c;
    uint32_t family;
    tamis_error *err;
} decoder;

static uint32_t read_id(tm_cursor *c)
{
    uint64_t v = tm_read_varint(c);
    if (v > UINT32_MAX) c->bad = true;
    return (uint32_t)v;
}

static uint32_t read_level(tm_cursor *c)
{
    uint64_t v = tm_read_varint(c);
    if (v >= TM_LEVELS) c->bad = true;
    return (uint32_t)v;
}

static int decode_table(decoder *d)
{
    uint32_t level = read_level(&d->c);
    tm_slice record = tm_read_slice(&d->c);
    if (d->c.bad) return TAMIS_OK; // the caller reports
    tm_edit_table *t = new_table(d->e, d->family, level, 0);
    if (t == NULL) return tm_fail_nomem(d->err);
    t->add = true;
    TM_TRY(tm_table_meta_decode(&t->meta, record, d->err));
    t->number = t->meta.number;
    return TAMIS_OK;
}

static int decode_family(decoder *d, bool gone)
{
    uint32_t id = read_id(&d->c);
    tm_slice name = {0}, comparator = {0}, merger = {0};
    if (!gone) {
        name = tm_read_slice(&d->c);
        comparator = tm_read_slice(&d->c);
        merger = tm_read_slice(&d->c);
    }
    if (d->c.bad) return TAMIS_OK;
    int st = tm_edit_add_family(d->e, id, name, comparator, merger);
    if (st != TAMIS_OK) return tm_fail_nomem(d->err);
    d->e->families[d->e->family_count - 1].drop = gone;
    return TAMIS_OK;
}

static int decode_named(decoder *d, uint64_t tag)
{
    int st = TAMIS_OK;
    if (tag == TAG_OPTION) {
        uint32_t id = read_id(&d->c);
        tm_slice name = tm_read_slice(&d->c), value = tm_read_slice(&d->c);
        if (!d->c.bad) st = tm_edit_add_option(d->e, id, name, value);
    } else if (tag == TAG_CURSOR) {
        uint32_t level = read_level(&d->c);
        tm_slice key = tm_read_slice(&d->c);
        if (!d->c.bad) st = tm_edit_set_cursor(d->e, d->family, level, key);
    } else if (tag == TAG_FLUSHED) {
        uint64_t seq = tm_read_varint(&d->c);
        if (seq > TM_MAX_SEQ) d->c.bad = true;
        if (!d->c.bad) st = tm_edit_set_flushed(d->e, d->family, seq);
    } else { // TAG_TABLE_GONE
        uint32_t level = read_level(&d->c);
        uint64_t number = tm_read_varint(&d->c);
        if (!d->c.bad) st = tm_edit_drop_table(d->e, d->family, level, number);
    }
    return st == TAMIS_OK ? st : tm_fail_nomem(d->err);
}

static int decode_field(decoder *d, uint64_t tag)
{
    tm_edit *e = d->e;
    switch (tag) {
    case TAG_STORE: {
        tm_slice id = tm_read_bytes(&d->c, sizeof e->store_id);
        e->hash_seed = tm_read64(&d->c);
        e->format_level = tm_read_varint(&d->c);
        if (!d->c.bad) memcpy(e->store_id, id.data, sizeof e->store_id);
        e->has_store = true;
        return TAMIS_OK;
    }
    case TAG_NEXT_FILE:
        e->next_file = tm_read_varint(&d->c);
        e->has_next_file = true;
        return TAMIS_OK;
    case TAG_LAST_SEQ:
        e->last_seq = tm_read_varint(&d->c);
        e->has_last_seq = true;
        if (e->last_seq > TM_MAX_SEQ) d->c.bad = true;
        return TAMIS_OK;
    case TAG_MIN_LOG:
        e->min_log = tm_read_varint(&d->c);
        e->has_min_log = true;
        return TAMIS_OK;
    case TAG_LIVE_TABLES:
        e->live_tables = tm_read_varint(&d->c);
        e->has_live_tables = true;
        return TAMIS_OK;
    case TAG_NEXT_FAMILY:
        e->next_family = read_id(&d->c);
        e->has_next_family = true;
        return TAMIS_OK;
    case TAG_IN_FAMILY:
        d->family = read_id(&d->c);
        return TAMIS_OK;
    case TAG_FAMILY:
    case TAG_FAMILY_GONE:
        return decode_family(d, tag == TAG_FAMILY_GONE);
    case TAG_TABLE:
        return decode_table(d);
    case TAG_TABLE_GONE:
    case TAG_OPTION:
    case TAG_CURSOR:
    case TAG_FLUSHED:
        return decode_named(d, tag);
    default:
        d->c.bad = true;
        return TAMIS_OK;
    }
}

int tm_edit_decode(tm_edit *e, tm_slice payload, uint64_t *chain, uint64_t number, uint64_t offset,
                   tamis_error *err)
{
    decoder d = {e, tm_cursor_of(payload), 0, err};
    bool ended = false;
    while (!ended && !d.c.bad && tm_cursor_left(&d.c) > 0) {
        const uint8_t *at = d.c.p;
        uint64_t tag = tm_read_varint(&d.c);
        if (tag == TAG_CHAIN) {
            uint64_t stored = tm_read64(&d.c);
            uint64_t next = chain_after(*chain, payload.data, (size_t)(at - payload.data));
            if (!d.c.bad && stored != next) {
                return tm_fail_corrupt(err, number, offset,
                                       "MANIFEST-%06llu: the edit at offset %llu does not follow "
                                       "the one before it: chain %016llx expected, %016llx found",
                                       (unsigned long long)number, (unsigned long long)offset,
                                       (unsigned long long)next, (unsigned long long)stored);
            }
            *chain = next;
            ended = true;
        } else {
            int st = decode_field(&d, tag);
            if (st == TAMIS_CORRUPT)
                d.c.bad = true;
            else
                TM_TRY(st);
        }
    }
    if (d.c.bad || !ended || tm_cursor_left(&d.c) > 0) {
        return tm_fail_corrupt(err, number, offset,
                               "MANIFEST-%06llu: the edit at offset %llu cannot be read",
                               (unsigned long long)number, (unsigned long long)offset);
    }
    return TAMIS_OK;
}
