/*
 * Large allocations without the cost of ASan. An engine allocates tables of many megabytes, of
 * which an input touches only some pages. ASan would poison all pages for each input, which takes
 * ten times as long as the input itself. Here, each large block gets pages of its own, followed by
 * an inaccessible page. When the block is freed, its memory is returned to the kernel and its pages
 * become inaccessible as well. The linker redirects calloc() and free() to this file (--wrap).
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { LARGE = 64 * 1024, PAGE = 4096, ALIGNMENT = 16, BLOCKS = 16 };

static struct block {
    char *pages; /* kept after the block is freed; NULL: none yet */
    size_t size; /* size without the last page, which is never accessible */
    void *given; /* what calloc() has returned; NULL: the block is free */
} blocks[BLOCKS];

void *__real_calloc(size_t count, size_t size);
void __real_free(void *memory);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *memory);

static struct block *find_block(size_t size)
{
    for (struct block *block = blocks; block < blocks + BLOCKS; block++) {
        if (block->pages != NULL && (block->given != NULL || block->size != size))
            continue;
        if (block->pages == NULL) {
            void *pages = mmap(NULL, size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            assert(pages != MAP_FAILED);
            *block = (struct block){.pages = pages, .size = size};
        }
        return block;
    }
    assert(false && "a large block was not freed");
    return NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    size_t len;
    if (__builtin_mul_overflow(count, size, &len) || len < LARGE)
        return __real_calloc(count, size);
    len = (len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct block *block = find_block((len + PAGE - 1) / PAGE * PAGE);
    int failed = mprotect(block->pages, block->size, PROT_READ | PROT_WRITE);
    assert(failed == 0);
    block->given = block->pages + block->size - len;
    return block->given;
}

void __wrap_free(void *memory)
{
    for (struct block *block = blocks; block < blocks + BLOCKS; block++) {
        if (memory == NULL || block->given != memory)
            continue;
        int failed = madvise(block->pages, block->size, MADV_DONTNEED);
        assert(failed == 0);
        failed = mprotect(block->pages, block->size, PROT_NONE);
        assert(failed == 0);
        block->given = NULL;
        return;
    }
    __real_free(memory);
}
