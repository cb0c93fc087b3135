/* Memory of a page: malloc and free of kernel.c in WebAssembly, where memory only ever grows. What a model is made from is
   freed once it is loaded, and its room is used again: the first free block that suffices is taken, and neighbours are
   joined. The compiler's own allocator rounds each size up to a power of two. */
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

void *malloc(size_t wanted) {
    const size_t size = (wanted + sizeof(Block) + STEP - 1) / STEP * STEP;
    if (size < wanted) return NULL;
    for (Block *block = first; block; block = block->next) {
        if (!block->is_free) continue;
        for (Block *next; (next = block->next) && next->is_free; block->next = next->next) {
            block->size += next->size;
            if (last == next) last = block;
        }
        if (block->size >= size) return take(block, size);
    }
    return grow(size) ? take(last, size) : NULL;
}

void free(void *at) {
    if (at) ((Block *)at - 1)->is_free = 1;
}

void *calloc(size_t count, size_t size) {
    void *at = size && count > SIZE_MAX / size ? NULL : malloc(count * size);
    return at ? memset(at, 0, count * size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size) { return alignment <= STEP ? malloc(size) : NULL; }
