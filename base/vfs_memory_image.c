// SPDX-License-Identifier: BSD-2-Clause
//
// vfs_memory_image.c - the two images of files and directories, and the operations between them.
#include <errno.h>

#include "base/mem.h"
#include "base/vfs_memory.h"

// Entries of a page table for one reservation: 16 GiB, so that a wild number is refused and not
// taken for memory.
#define RESERVE_MAX_PAGES ((uint64_t)1 << 22)

// Makes room for extra more elements of size each in a vector that doubles.
static int vector_grow(void **data, size_t *cap, size_t count, size_t extra, size_t each)
{
    if (*cap - count >= extra) return 0;
    size_t want = TM_MAX(*cap * 2, count + extra);
    if (want > SIZE_MAX / 2 / each) return ENOMEM;
    want = TM_MAX(want, 4);
    void *p = tm_realloc(*data, want * each);
    if (p == NULL) return ENOMEM;
    *data = p;
    *cap = want;
    return 0;
}

// ---- Inodes ------------------------------------------------------------------------------------

tm_memfs_inode *tm_memfs_inode_create(tm_memfs *fs, bool is_dir)
{
    tm_memfs_inode *inode = tm_calloc(1, sizeof *inode);
    if (inode == NULL) return NULL;
    inode->is_dir = is_dir;
    inode->refs = 1;
    inode->prev = fs->last;
    if (fs->last != NULL)
        fs->last->next = inode;
    else
        fs->first = inode;
    fs->last = inode;
    return inode;
}

void tm_memfs_inode_destroy(tm_memfs *fs, tm_memfs_inode *inode)
{
    if (inode->counted) fs->used_pages -= inode->held;
    for (size_t i = 0; i < inode->n_pages; i++) {
        tm_memfs_page *page = &inode->pages[i];
        if (page->now != page->disk) tm_free(page->now);
        tm_free(page->disk);
    }
    for (size_t i = 0; i < inode->n_entries; i++) tm_free(inode->entries[i]);
    tm_free(inode->pages);
    tm_free(inode->sizes);
    tm_free(inode->entries);
    if (inode->prev != NULL)
        inode->prev->next = inode->next;
    else
        fs->first = inode->next;
    if (inode->next != NULL)
        inode->next->prev = inode->prev;
    else
        fs->last = inode->prev;
    tm_free(inode);
}

void tm_memfs_account(tm_memfs *fs, tm_memfs_inode *inode)
{
    bool counted = inode->links > 0 || inode->opens > 0;
    if (counted == inode->counted) return;
    inode->counted = counted;
    if (counted)
        fs->used_pages += inode->held;
    else
        fs->used_pages -= inode->held;
}

// One reference less; the last one puts the inode before the list of those to be freed.
static tm_memfs_inode *release(tm_memfs_inode *inode, tm_memfs_inode *dead)
{
    if (inode == NULL) return dead;
    assert(inode->refs > 0);
    if (--inode->refs > 0) return dead;
    inode->next_dead = dead;
    return inode;
}

// A directory takes what only it names along: with a list, not by recursion, for deep trees.
void tm_memfs_inode_unref(tm_memfs *fs, tm_memfs_inode *inode)
{
    tm_memfs_inode *dead = release(inode, NULL);
    while (dead != NULL) {
        tm_memfs_inode *one = dead;
        dead = one->next_dead;
        for (size_t i = 0; i < one->n_entries; i++) {
            tm_memfs_entry *entry = one->entries[i];
            assert(entry->pending == 0);
            if (entry->now != NULL) {
                entry->now->links--;
                entry->now->parent = NULL;
                tm_memfs_account(fs, entry->now);
            }
            dead = release(entry->now, dead);
            dead = release(entry->disk, dead);
        }
        tm_memfs_inode_destroy(fs, one);
    }
}

// ---- Pages -------------------------------------------------------------------------------------

// The place of page no, or of the first one behind it.
static size_t page_index(const tm_memfs_inode *inode, uint64_t no)
{
    size_t low = 0, high = inode->n_pages;
    if (high > 0 && inode->pages[high - 1].no < no) return high; // appending
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (inode->pages[middle].no < no)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tm_memfs_page *page_find(const tm_memfs_inode *inode, uint64_t no)
{
    size_t i = page_index(inode, no);
    return i < inode->n_pages && inode->pages[i].no == no ? &inode->pages[i] : NULL;
}

// Room in the vector was made.
static tm_memfs_page *page_insert(tm_memfs_inode *inode, uint64_t no)
{
    size_t i = page_index(inode, no);
    assert(inode->n_pages < inode->cap_pages);
    memmove(inode->pages + i + 1, inode->pages + i, (inode->n_pages - i) * sizeof *inode->pages);
    inode->n_pages++;
    inode->pages[i] = (tm_memfs_page){.no = no};
    return &inode->pages[i];
}

static int pages_grow(tm_memfs_inode *inode, size_t extra)
{
    void *data = inode->pages;
    int rc = vector_grow(&data, &inode->cap_pages, inode->n_pages, extra, sizeof *inode->pages);
    inode->pages = data;
    return rc;
}

static bool room_for(const tm_memfs *fs, uint64_t pages)
{
    if (fs->limit_bytes == 0) return true;
    uint64_t limit = fs->limit_bytes / TM_MEMFS_PAGE;
    return fs->used_pages <= limit && pages <= limit - fs->used_pages;
}

static void page_hold(tm_memfs *fs, tm_memfs_inode *inode, tm_memfs_page *page)
{
    if (page->held) return;
    page->held = true;
    inode->held++;
    if (inode->counted) fs->used_pages++;
}

// The page with a buffer of its own to write to, dirty. ENOSPC, ENOMEM: nothing changed.
static int page_for_write(tm_memfs *fs, tm_memfs_inode *inode, uint64_t no, tm_memfs_page **out)
{
    tm_memfs_page *page = page_find(inode, no);
    if ((page == NULL || !page->held) && !room_for(fs, 1)) return ENOSPC;
    if (page == NULL || page->now == NULL || page->now == page->disk) {
        uint8_t *now = tm_alloc(TM_MEMFS_PAGE);
        if (now == NULL) return ENOMEM;
        if (page == NULL && pages_grow(inode, 1) != 0) {
            tm_free(now);
            return ENOMEM;
        }
        if (page == NULL) page = page_insert(inode, no);
        if (page->now != NULL)
            memcpy(now, page->now, TM_MEMFS_PAGE);
        else
            memset(now, 0, TM_MEMFS_PAGE);
        page->now = now;
    }
    page_hold(fs, inode, page);
    page->dirty = true;
    *out = page;
    return 0;
}

static int sizes_grow(tm_memfs_inode *inode)
{
    void *data = inode->sizes;
    int rc = vector_grow(&data, &inode->cap_sizes, inode->n_sizes, 1, sizeof *inode->sizes);
    inode->sizes = data;
    return rc;
}

static void size_set(tm_memfs_inode *inode, uint64_t size)
{
    if (size == inode->size) return;
    assert(inode->n_sizes < inode->cap_sizes);
    inode->size = size;
    inode->sizes[inode->n_sizes++] = size;
}

// ---- Files -------------------------------------------------------------------------------------

size_t tm_memfs_read(const tm_memfs_inode *inode, uint64_t offset, void *buf, size_t n)
{
    if (offset >= inode->size) return 0;
    n = (size_t)TM_MIN((uint64_t)n, inode->size - offset);
    uint8_t *out = buf;
    for (size_t done = 0; done < n;) {
        uint64_t at = offset + done;
        size_t in_page = (size_t)(at % TM_MEMFS_PAGE);
        size_t part = TM_MIN(n - done, TM_MEMFS_PAGE - in_page);
        const tm_memfs_page *page = page_find(inode, at / TM_MEMFS_PAGE);
        if (page != NULL && page->now != NULL)
            memcpy(out + done, page->now + in_page, part);
        else
            memset(out + done, 0, part);
        done += part;
    }
    return n;
}

int tm_memfs_write(tm_memfs *fs, tm_memfs_inode *inode, uint64_t offset, const void *buf, size_t n,
                   size_t *put)
{
    *put = 0;
    if (n == 0) return 0;
    int rc = sizes_grow(inode);
    if (rc != 0) return rc;
    const uint8_t *in = buf;
    size_t done = 0;
    while (done < n) {
        uint64_t at = offset + done;
        size_t in_page = (size_t)(at % TM_MEMFS_PAGE);
        size_t part = TM_MIN(n - done, TM_MEMFS_PAGE - in_page);
        tm_memfs_page *page;
        rc = page_for_write(fs, inode, at / TM_MEMFS_PAGE, &page);
        if (rc != 0) break;
        memcpy(page->now + in_page, in + done, part);
        done += part;
    }
    if (done == 0) return rc;
    if (offset + done > inode->size) size_set(inode, offset + done);
    *put = done;
    return 0;
}

int tm_memfs_reserve(tm_memfs *fs, tm_memfs_inode *inode, uint64_t offset, uint64_t n)
{
    if (n == 0) return 0;
    uint64_t first = offset / TM_MEMFS_PAGE, last = (offset + n - 1) / TM_MEMFS_PAGE;
    uint64_t there = 0, held = 0;
    for (size_t i = page_index(inode, first); i < inode->n_pages; i++) {
        if (inode->pages[i].no > last) break;
        there++;
        held += inode->pages[i].held;
    }
    uint64_t pages = last - first + 1;
    if (pages > RESERVE_MAX_PAGES || !room_for(fs, pages - held)) return ENOSPC;
    int rc = pages_grow(inode, (size_t)(pages - there));
    if (rc != 0) return rc;
    for (uint64_t no = first; no <= last; no++) {
        tm_memfs_page *page = page_find(inode, no);
        page_hold(fs, inode, page != NULL ? page : page_insert(inode, no));
    }
    return 0;
}

// Pages from no on read as zeros and take no room; what the disk has of them stays until a sync.
static void pages_cut(tm_memfs *fs, tm_memfs_inode *inode, uint64_t no)
{
    size_t keep = page_index(inode, no);
    for (size_t i = keep; i < inode->n_pages; i++) {
        tm_memfs_page page = inode->pages[i];
        if (page.now != page.disk) tm_free(page.now);
        if (page.held) {
            inode->held--;
            if (inode->counted) fs->used_pages--;
        }
        if (page.disk == NULL) continue;
        inode->pages[keep++] = (tm_memfs_page){.no = page.no, .disk = page.disk};
    }
    inode->n_pages = keep;
}

int tm_memfs_truncate(tm_memfs *fs, tm_memfs_inode *inode, uint64_t size)
{
    int rc = sizes_grow(inode);
    if (rc != 0) return rc;
    size_t in_page = (size_t)(size % TM_MEMFS_PAGE);
    if (size < inode->size && in_page != 0) {
        tm_memfs_page *page = page_find(inode, size / TM_MEMFS_PAGE);
        if (page != NULL && page->now != NULL) {
            rc = page_for_write(fs, inode, size / TM_MEMFS_PAGE, &page);
            if (rc != 0) return rc;
            memset(page->now + in_page, 0, TM_MEMFS_PAGE - in_page);
        }
    }
    if (size <= inode->size) pages_cut(fs, inode, size / TM_MEMFS_PAGE + (in_page != 0));
    size_set(inode, size);
    return 0;
}

void tm_memfs_sync_file(tm_memfs_inode *inode)
{
    size_t keep = 0;
    for (size_t i = 0; i < inode->n_pages; i++) {
        tm_memfs_page page = inode->pages[i];
        // Not dirty and not equal: written back in vain by a sync that failed, or cut off.
        if (page.dirty || page.now == NULL) {
            if (page.disk != page.now) tm_free(page.disk);
            page.disk = page.now;
            page.dirty = false;
        }
        if (page.held) inode->pages[keep++] = page;
    }
    inode->n_pages = keep;
    inode->disk_size = inode->size;
    inode->n_sizes = 0;
}

void tm_memfs_fail_sync_file(tm_memfs_inode *inode)
{
    for (size_t i = 0; i < inode->n_pages; i++) inode->pages[i].dirty = false;
    inode->n_sizes = 0;
}

// ---- Entries -----------------------------------------------------------------------------------

static size_t entry_index(const tm_memfs_inode *dir, const char *name)
{
    size_t low = 0, high = dir->n_entries;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(dir->entries[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

tm_memfs_entry *tm_memfs_lookup(const tm_memfs_inode *dir, const char *name)
{
    size_t i = entry_index(dir, name);
    if (i == dir->n_entries || strcmp(dir->entries[i]->name, name) != 0) return NULL;
    return dir->entries[i]->now != NULL ? dir->entries[i] : NULL;
}

int tm_memfs_entry_make(tm_memfs *fs, tm_memfs_inode *dir, const char *name, tm_memfs_entry **out)
{
    (void)fs;
    size_t i = entry_index(dir, name), len = strlen(name);
    assert(len <= TM_MEMFS_NAME_MAX);
    if (i < dir->n_entries && strcmp(dir->entries[i]->name, name) == 0) {
        *out = dir->entries[i];
        return 0;
    }
    void *data = dir->entries;
    int rc = vector_grow(&data, &dir->cap_entries, dir->n_entries, 1, sizeof(tm_memfs_entry *));
    dir->entries = data;
    if (rc != 0) return rc;
    tm_memfs_entry *entry = tm_calloc(1, sizeof *entry);
    if (entry == NULL) return ENOMEM;
    entry->dir = dir;
    memcpy(entry->name, name, len + 1);
    memmove(dir->entries + i + 1, dir->entries + i,
            (dir->n_entries - i) * sizeof(tm_memfs_entry *));
    dir->n_entries++;
    dir->entries[i] = entry;
    *out = entry;
    return 0;
}

void tm_memfs_entry_tidy(tm_memfs *fs, tm_memfs_entry *entry)
{
    (void)fs;
    if (entry->now != NULL || entry->disk != NULL || entry->pending > 0) return;
    tm_memfs_inode *dir = entry->dir;
    size_t i = entry_index(dir, entry->name);
    assert(i < dir->n_entries && dir->entries[i] == entry);
    dir->n_entries--;
    memmove(dir->entries + i, dir->entries + i + 1,
            (dir->n_entries - i) * sizeof(tm_memfs_entry *));
    tm_free(entry);
}

void tm_memfs_entry_set(tm_memfs *fs, tm_memfs_entry *entry, tm_memfs_inode *inode)
{
    tm_memfs_inode *old = entry->now;
    if (old == inode) return;
    entry->now = inode;
    if (inode != NULL) {
        inode->refs++;
        inode->links++;
        if (inode->is_dir) inode->parent = entry->dir;
        tm_memfs_account(fs, inode);
    }
    if (old != NULL) {
        old->links--;
        if (old->links == 0) old->parent = NULL;
        tm_memfs_account(fs, old);
        tm_memfs_inode_unref(fs, old);
    }
}

bool tm_memfs_dir_empty(const tm_memfs_inode *dir)
{
    for (size_t i = 0; i < dir->n_entries; i++) {
        if (dir->entries[i]->now != NULL) return false;
    }
    return true;
}

// ---- Pending operations ------------------------------------------------------------------------

tm_memfs_op *tm_memfs_op_create(void)
{
    return tm_calloc(1, sizeof(tm_memfs_op));
}

static void entry_pin(tm_memfs_entry *entry)
{
    if (entry == NULL) return;
    entry->pending++;
    entry->dir->refs++;
}

static void entry_unpin(tm_memfs *fs, tm_memfs_entry *entry)
{
    if (entry == NULL) return;
    tm_memfs_inode *dir = entry->dir;
    entry->pending--;
    tm_memfs_entry_tidy(fs, entry);
    tm_memfs_inode_unref(fs, dir);
}

void tm_memfs_op_append(tm_memfs *fs, tm_memfs_op *op, tm_memfs_entry *from, tm_memfs_entry *to,
                        tm_memfs_inode *inode)
{
    *op = (tm_memfs_op){.prev = fs->last_op, .from = from, .to = to, .inode = inode};
    if (fs->last_op != NULL)
        fs->last_op->next = op;
    else
        fs->first_op = op;
    fs->last_op = op;
    entry_pin(from);
    entry_pin(to);
    inode->refs++;
}

static void entry_set_disk(tm_memfs *fs, tm_memfs_entry *entry, tm_memfs_inode *inode)
{
    if (entry == NULL) return;
    tm_memfs_inode *old = entry->disk;
    entry->disk = inode;
    if (inode != NULL) inode->refs++;
    tm_memfs_inode_unref(fs, old);
}

void tm_memfs_op_apply(tm_memfs *fs, const tm_memfs_op *op)
{
    entry_set_disk(fs, op->from, NULL);
    entry_set_disk(fs, op->to, op->inode);
}

void tm_memfs_op_drop(tm_memfs *fs, tm_memfs_op *op)
{
    if (op->prev != NULL)
        op->prev->next = op->next;
    else
        fs->first_op = op->next;
    if (op->next != NULL)
        op->next->prev = op->prev;
    else
        fs->last_op = op->prev;
    entry_unpin(fs, op->from);
    entry_unpin(fs, op->to);
    tm_memfs_inode_unref(fs, op->inode);
    tm_free(op);
}

static bool concerns(const tm_memfs_entry *entry, const tm_memfs_inode *dir)
{
    return entry != NULL && (entry->dir == dir || entry->mark);
}

// Applies the operations on dir, and before them those on other directories that they build on:
// found backwards, through the entries of a rename out of or into dir.
void tm_memfs_sync_dir(tm_memfs *fs, const tm_memfs_inode *dir)
{
    bool moves = false;
    for (tm_memfs_op *op = fs->last_op; op != NULL; op = op->prev) {
        bool moves_dir = tm_memfs_op_moves_dir(op);
        op->mark = concerns(op->from, dir) || concerns(op->to, dir) || (moves && moves_dir);
        if (!op->mark) continue;
        if (op->from != NULL) op->from->mark = true;
        if (op->to != NULL) op->to->mark = true;
        moves = moves || moves_dir;
    }
    for (tm_memfs_op *op = fs->first_op, *next; op != NULL; op = next) {
        next = op->next;
        if (!op->mark) continue;
        if (op->from != NULL) op->from->mark = false;
        if (op->to != NULL) op->to->mark = false;
        tm_memfs_op_apply(fs, op);
        tm_memfs_op_drop(fs, op);
    }
}
