/* Memory of a page: malloc and free of kernel.c in WebAssembly, where memory only ever grows. The first free block that
   suffices is taken, and neighbours are joined, so that what was needed to load a model ends up in one free block at the end,
   which `trim` cuts off. The compiler's own allocator rounds each size up to a power of two. */
#include <stdint.h>
#include <string.h>

enum { STEP = 64, PAGE = 1 << 16 }; /* bytes: of addresses and sizes, and that memory grows by */

/* Stands before what it describes; all of them lie one after the other. */
typedef struct Block {
    struct Block *next;
    size_t size; /* bytes to the next one */
    int is_free, padding;
} Block;

extern char __heap_base;
static Block *first, *last;

/* Let the last block be free and of at least some size; return whether there is so much memory. */
static int grow(size_t size) {
    char *end = (char *)(__builtin_wasm_memory_size(0) * PAGE);
    if (first == NULL) {
        first = last = (Block *)(((uintptr_t)&__heap_base + sizeof(Block) + STEP - 1) / STEP * STEP - sizeof(Block));
        *first = (Block){.size = (size_t)(end - (char *)first) / STEP * STEP, .is_free = 1};
    }
    if (!last->is_free) {
        Block *at = (Block *)((char *)last + last->size);
        if (end - (char *)at < STEP) {
            if (__builtin_wasm_memory_grow(0, 1) == (size_t)-1) return 0;
            end += PAGE;
        }
        *at = (Block){.size = (size_t)(end - (char *)at) / STEP * STEP, .is_free = 1};
        last = last->next = at;
    }
    if (last->size >= size) return 1;
    const size_t pages = (size - last->size + PAGE - 1) / PAGE;
    if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return 0;
    last->size += pages * PAGE;
    return 1;
}

/* Join a block and the free ones that follow. */
static void join(Block *block) {
    for (Block *next; (next = block->next) && next->is_free; block->next = next->next) {
        block->size += next->size;
        if (last == next) last = block;
    }
}

static void *take(Block *block, size_t size) {
    if (block->size - size >= STEP) {
        Block *rest = (Block *)((char *)block + size);
        *rest = (Block){block->next, block->size - size, 1, 0};
        *block = (Block){rest, size, 0, 0};
        if (last == block) last = rest;
    }
    block->is_free = 0;
    return block + 1;
}

static size_t block_size(size_t wanted) { return (wanted + sizeof(Block) + STEP - 1) / STEP * STEP; }

void *malloc(size_t wanted) {
    const size_t size = block_size(wanted);
    if (size < wanted) return NULL;
    for (Block *block = first; block; block = block->next) {
        if (!block->is_free) continue;
        join(block);
        if (block->size >= size) return take(block, size);
    }
    return grow(size) ? take(last, size) : NULL;
}

void free(void *at) {
    if (at) ((Block *)at - 1)->is_free = 1;
}

/* At the end of memory, where a cache of keys and values is, a block grows where it is. */
void *realloc(void *at, size_t wanted) {
    if (at == NULL) return malloc(wanted);
    Block *block = (Block *)at - 1;
    const size_t before = block->size - sizeof(Block), size = block_size(wanted);
    if (size < wanted) return NULL;
    join(block);
    if (block == last && block->size < size) {
        const size_t pages = (size - block->size + PAGE - 1) / PAGE;
        if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return NULL;
        block->size += pages * PAGE;
    }
    if (block->size >= size) return take(block, size);
    void *other = malloc(wanted);
    if (other == NULL) return NULL;
    memcpy(other, at, before);
    free(at);
    return other;
}

/* Cut off what is free at the end of memory; return how many bytes are left: a copy of these can go on from here. */
size_t trim(void) {
    for (Block *block = first; block; block = block->next)
        if (block->is_free) join(block);
    if (last == NULL || !last->is_free) return __builtin_wasm_memory_size(0) * PAGE;
    const size_t end = ((size_t)(last + 1) + PAGE - 1) / PAGE * PAGE;
    last->size = (end - (size_t)last) / STEP * STEP;
    return end;
}

void *calloc(size_t count, size_t size) {
    void *at = size && count > SIZE_MAX / size ? NULL : malloc(count * size);
    return at ? memset(at, 0, count * size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size) { return alignment <= STEP ? malloc(size) : NULL; }
