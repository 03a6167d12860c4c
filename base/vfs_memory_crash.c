// SPDX-License-Identifier: BSD-2-Clause
//
// vfs_memory_crash.c - what a crash leaves of the file system in memory.
//
//  entries  Each pending operation is kept or lost by itself, removals and renames included. One
//           that builds on a lost rename (shares a name with it) is lost with it: a name then has
//           one of the states it went through, and what a rename moved is under its old name or its
//           new one, never under both and never under none.
//  sizes    One of those the file went through since its last sync.
//  pages    Each dirty page is kept or lost by itself, whatever becomes of the size: behind the
//           size it is gone, and below it a lost page has its old content, zeros if it had none.
//           What a kept truncation cut off does not come back.
//  torn     One dirty page is new up to a sector boundary and old from there.
//
// How likely things are kept is drawn first, for all entries and then for each file, from nearly
// never to nearly always: with even odds for everything, a long log would always be full of holes.
//
// A kill of the process alone (KEEP_ALL) leaves the images as they are: what was pending stays
// pending, and a second crash may still lose it.
#include "base/mem.h"
#include "base/vfs_memory.h"

#define SECTORS (TM_MEMFS_PAGE / TM_MEMFS_SECTOR)

typedef struct crash {
    bool chance; // false: all is lost
    tm_random random;
    uint64_t sixteenths; // of being kept
    const tm_memfs_inode *torn_file;
    size_t torn_page;
} crash;

static void draw_odds(crash *c)
{
    static const uint8_t odds[] = {1, 4, 8, 12, 15};
    c->sixteenths = odds[tm_random_below(&c->random, TM_COUNT(odds))];
}

static bool kept(crash *c)
{
    return c->chance && tm_random_below(&c->random, 16) < c->sixteenths;
}

// ---- Directories -------------------------------------------------------------------------------

static bool marked(const tm_memfs_entry *entry)
{
    return entry != NULL && entry->mark;
}

// Marks the entries of lost renames, so that what builds on these is lost too.
static void crash_operations(tm_memfs *fs, crash *c)
{
    bool moves_lost = false; // of a directory: then later ones are lost, or cycles could form
    draw_odds(c);
    for (tm_memfs_op *op = fs->first_op; op != NULL; op = op->next) {
        bool moves_dir = tm_memfs_op_moves_dir(op);
        bool keep = kept(c);
        if (marked(op->from) || marked(op->to) || (moves_lost && moves_dir)) keep = false;
        if (keep) {
            tm_memfs_op_apply(fs, op);
        } else if (op->from != NULL && op->to != NULL) {
            op->from->mark = op->to->mark = true;
            moves_lost = moves_lost || moves_dir;
        }
    }
    while (fs->first_op != NULL) {
        tm_memfs_op *op = fs->first_op;
        if (op->from != NULL) op->from->mark = false;
        if (op->to != NULL) op->to->mark = false;
        tm_memfs_op_drop(fs, op);
    }
}

// The running system sees what the disk has.
static void reload_directory(tm_memfs *fs, tm_memfs_inode *dir)
{
    for (size_t i = dir->n_entries; i-- > 0;) {
        tm_memfs_entry *entry = dir->entries[i];
        tm_memfs_entry_set(fs, entry, entry->disk);
        tm_memfs_entry_tidy(fs, entry);
    }
}

static void find_parents(tm_memfs *fs)
{
    for (tm_memfs_inode *inode = fs->first; inode != NULL; inode = inode->next) {
        inode->parent = NULL;
    }
    for (tm_memfs_inode *inode = fs->first; inode != NULL; inode = inode->next) {
        for (size_t i = 0; i < inode->n_entries; i++) {
            tm_memfs_inode *child = inode->entries[i]->now;
            if (child != NULL && child->is_dir) child->parent = inode;
        }
    }
    fs->root->parent = fs->root;
}

static void crash_directories(tm_memfs *fs, crash *c)
{
    // Each inode is held while the list is walked: dropping the hold of one can then free only
    // itself and those before it.
    for (tm_memfs_inode *inode = fs->first; inode != NULL; inode = inode->next) inode->refs++;
    crash_operations(fs, c);
    for (tm_memfs_inode *inode = fs->first; inode != NULL; inode = inode->next) {
        reload_directory(fs, inode);
    }
    for (tm_memfs_inode *inode = fs->first, *next; inode != NULL; inode = next) {
        next = inode->next;
        tm_memfs_inode_unref(fs, inode);
    }
    find_parents(fs);
}

// ---- Files -------------------------------------------------------------------------------------

// The page's bytes from the file offset end on become zeros; false: none is left.
static bool cut_page(uint8_t *bytes, uint64_t no, uint64_t end)
{
    uint64_t start = no * TM_MEMFS_PAGE;
    if (end <= start) return false;
    if (end - start < TM_MEMFS_PAGE) {
        memset(bytes + (end - start), 0, (size_t)(TM_MEMFS_PAGE - (end - start)));
    }
    return true;
}

// The buffer that is left of a page. floor: where kept truncations cut the old content.
static uint8_t *crash_page(crash *c, const tm_memfs_page *page, uint64_t floor, bool torn)
{
    uint8_t *new = page->dirty ? page->now : NULL;
    uint8_t *old = page->disk;
    if (page->now != old && new == NULL) tm_free(page->now); // a failed sync's, never written
    if (old != NULL && !cut_page(old, page->no, floor)) {
        tm_free(old);
        old = NULL;
    }
    if (new == NULL) return old;

    bool keep = kept(c);
    size_t cut = 0;
    if (torn)
        cut = (1 + (size_t)tm_random_below(&c->random, SECTORS - 1)) * TM_MEMFS_SECTOR;
    else if (keep)
        cut = TM_MEMFS_PAGE;
    if (cut == 0) {
        tm_free(new);
        return old;
    }
    if (old != NULL)
        memcpy(new + cut, old + cut, TM_MEMFS_PAGE - cut);
    else
        memset(new + cut, 0, TM_MEMFS_PAGE - cut);
    tm_free(old);
    return new;
}

static void crash_file(crash *c, tm_memfs_inode *inode)
{
    draw_odds(c);
    uint64_t size = inode->disk_size, floor = size;
    size_t n_kept = inode->n_sizes; // the last size kept implies those before it
    while (n_kept > 0 && !kept(c)) n_kept--;
    for (size_t i = 0; i < n_kept; i++) {
        size = inode->sizes[i];
        floor = TM_MIN(floor, size);
    }
    size_t left = 0;
    for (size_t i = 0; i < inode->n_pages; i++) {
        const tm_memfs_page page = inode->pages[i];
        bool torn = inode == c->torn_file && i == c->torn_page;
        uint8_t *bytes = crash_page(c, &page, floor, torn);
        if (bytes != NULL && !cut_page(bytes, page.no, size)) {
            tm_free(bytes);
            bytes = NULL;
        }
        if (bytes == NULL) continue;
        inode->pages[left++] =
            (tm_memfs_page){.no = page.no, .now = bytes, .disk = bytes, .held = true};
    }
    inode->n_pages = left;
    inode->held = left;
    inode->n_sizes = 0;
    inode->size = inode->disk_size = size;
}

// Chooses the page to tear among the dirty ones of all files that are left.
static void choose_torn(tm_memfs *fs, crash *c)
{
    uint64_t seen = 0;
    for (const tm_memfs_inode *inode = fs->first; inode != NULL; inode = inode->next) {
        for (size_t i = 0; i < inode->n_pages; i++) {
            if (!inode->pages[i].dirty || inode->links == 0) continue;
            seen++; // the n-th replaces the choice with probability 1/n: even over all
            if (tm_random_below(&c->random, seen) == 0) {
                c->torn_file = inode;
                c->torn_page = i;
            }
        }
    }
}

// ---- The crash ---------------------------------------------------------------------------------

void tm_memfs_crash(tm_memfs *fs, tamis_crash kind, uint64_t seed)
{
    crash c = {
        .chance = kind == TAMIS_CRASH_RANDOM || kind == TAMIS_CRASH_TORN,
        .random = tm_random_seed(seed),
    };
    fs->epoch++;
    fs->stopped = false;
    if (kind != TAMIS_CRASH_KEEP_ALL) {
        crash_directories(fs, &c);
        if (kind == TAMIS_CRASH_TORN) choose_torn(fs, &c);
        fs->used_pages = 0;
        for (tm_memfs_inode *inode = fs->first; inode != NULL; inode = inode->next) {
            inode->counted = false;
            crash_file(&c, inode);
        }
    }
    for (tm_memfs_inode *inode = fs->first; inode != NULL; inode = inode->next) {
        inode->opens = 0;
        inode->shared_locks = 0;
        inode->exclusive_lock = false;
        tm_memfs_account(fs, inode);
    }
}
