// SPDX-License-Identifier: BSD-2-Clause
//
// table_insight.c - what a table tells of itself: places of keys, its filter, its properties, and
// whether it is whole.
#include <stdio.h>

#include "base/mem.h"
#include "sstable/compress.h"
#include "sstable/table_internal.h"
#include "sstable/table_verify.h"

// ---- Places ------------------------------------------------------------------------------------

static int place_in_partition(tm_table *t, const tm_load *how, tm_top_block *top, uint32_t p,
                              tm_slice key, uint64_t *offset, tamis_error *err)
{
    const tm_partition *part = &top->partitions[p];
    tm_index_block *index;
    uint32_t length;
    TM_TRY(tm_table_pin_index(t, how, top, p, &index, err));
    int st = TAMIS_OK;
    uint32_t i = tm_block_lower_bound(&index->block, &t->order, key, UINT64_MAX);
    if (i < index->block.n) {
        st = tm_table_data_place(t, index, i, offset, &length, err);
    } else {
        *offset = part->index_offset + part->index_length;
    }
    tm_cached_unref(&index->head);
    return st;
}

int tm_table_approximate_offset(tm_table *t, tm_slice key, uint64_t *offset, uint64_t *entries,
                                tamis_error *err)
{
    tm_read_counts counts = {0};
    tm_load how = {.counts = &counts};
    tm_top_block *top;
    TM_TRY(tm_table_pin_top(t, &how, &top, err));
    int st = TAMIS_OK;
    uint32_t p = tm_block_lower_bound(&top->block, &t->order, key, UINT64_MAX);
    if (p < top->block.n) {
        st = place_in_partition(t, &how, top, p, key, offset, err);
        *entries = top->partitions[p].entries_before;
    } else {
        *offset = t->meta.file_bytes;
        *entries = t->meta.entries;
    }
    tm_cached_unref(&top->head);
    return st;
}

// ---- Properties --------------------------------------------------------------------------------

// The properties' raw bytes, checked; *out is the caller's to free.
static int read_properties(tm_table *t, uint8_t **out, size_t *len, tamis_error *err)
{
    tm_read_counts counts = {0};
    tm_load how = {.counts = &counts};
    tm_top_block *top;
    TM_TRY(tm_table_pin_top(t, &how, &top, err));
    uint64_t offset = top->footer.properties_offset;
    uint32_t length = top->footer.properties_length;
    tm_cached_unref(&top->head);

    uint8_t *bytes = tm_alloc(length), *raw = NULL;
    tm_frame f;
    int st;
    TM_GOTO(bytes != NULL ? TAMIS_OK : tm_fail_nomem(err));
    TM_GOTO(tm_table_read(t, offset, bytes, length, err));
    TM_GOTO(tm_table_check_frame(t, TM_BLOCK_PROPERTIES, bytes, offset, length, &f, err));
    raw = tm_alloc(f.raw);
    TM_GOTO(raw != NULL ? TAMIS_OK : tm_fail_nomem(err));
    TM_GOTO(tm_decompress(&f, bytes + TM_FRAME_BYTES, raw, t->meta.number, offset, err));
    TM_GOTO(tm_properties_check(tm_slice_of(raw, f.raw), f.entries, t->meta.number, offset, err));
    *out = raw;
    *len = f.raw;
    raw = NULL;
out:
    tm_free(raw);
    tm_free(bytes);
    return st;
}

int tm_table_properties(tm_table *t, void (*each)(void *ctx, const char *name, tm_slice value),
                        void *ctx, tamis_error *err)
{
    uint8_t *raw;
    size_t len;
    TM_TRY(read_properties(t, &raw, &len, err));
    tm_cursor c = tm_cursor_of(tm_slice_of(raw, len));
    tm_slice name, value;
    while (tm_properties_next(&c, &name, &value)) {
        char text[64], decimal[24];
        size_t n = TM_MIN(name.len, sizeof text - 1); // ours are short; a longer one is cut
        if (n != 0) memcpy(text, name.data, n);
        text[n] = '\0';
        if (tm_property_type_of(name) == TM_PROPERTY_NUMBER) {
            tm_cursor number = tm_cursor_of(value);
            uint64_t v = tm_read_varint(&number);
            int digits = snprintf(decimal, sizeof decimal, "%llu", (unsigned long long)v);
            if (!number.bad) value = tm_slice_of(decimal, (size_t)digits);
        }
        each(ctx, text, value);
    }
    tm_free(raw);
    return TAMIS_OK;
}

// ---- The filter --------------------------------------------------------------------------------

static void filter_of_properties(tm_slice raw, tm_table_filter_info *info)
{
    tm_slice kind;
    uint64_t millibits = 0, ppb = 0;
    char text[24] = {0};
    if (tm_properties_find(raw, "filter", &kind) && kind.len != 0 && kind.len < sizeof text) {
        memcpy(text, kind.data, kind.len);
        if (tm_filter_kind_parse(text, &info->kind, NULL) != TAMIS_OK) info->kind = TM_FILTER_NONE;
    }
    (void)tm_properties_find_number(raw, "filter_millibits", &millibits);
    (void)tm_properties_find_number(raw, "filter_keys", &info->keys);
    (void)tm_properties_find_number(raw, "filter_bytes", &info->bytes);
    (void)tm_properties_find_number(raw, "filter_expected_ppb", &ppb);
    info->millibits = (uint32_t)TM_MIN(millibits, UINT32_MAX);
    info->expected_rate = (double)ppb / 1e9;
}

int tm_table_filter(tm_table *t, tm_table_filter_info *out, tamis_error *err)
{
    tm_table_filter_info *info = atomic_load_explicit(&t->info, memory_order_acquire), *none = NULL;
    if (info == NULL) {
        uint8_t *raw;
        size_t len;
        TM_TRY(read_properties(t, &raw, &len, err));
        info = tm_calloc(1, sizeof *info);
        if (info != NULL) filter_of_properties(tm_slice_of(raw, len), info);
        tm_free(raw);
        if (info == NULL) return tm_fail_nomem(err);
        // Release: pairs with the load above. Another thread may have been first.
        if (!atomic_compare_exchange_strong_explicit(&t->info, &none, info, memory_order_acq_rel,
                                                     memory_order_acquire)) {
            tm_free(info);
            info = none;
        }
    }
    *out = *info;
    return TAMIS_OK;
}

// ---- Verify ------------------------------------------------------------------------------------

int tm_table_verify(tm_table *t, void (*finding)(void *ctx, const tamis_error *e),
                    int (*progress)(void *ctx, uint64_t bytes), void *ctx, tm_table_check *out,
                    tamis_error *err)
{
    tm_file *file;
    TM_TRY(tm_table_cache_acquire(t->env.files, t->file, &file, err));
    int st = tm_table_verify_file(file, &t->meta, &t->order, finding, progress, ctx, out, err);
    tm_table_cache_release(t->env.files, t->file);
    return st;
}
