/* Runs the blocks of a compiled kernel on one processor: each thread of a block is a fiber, with a stack of its own.

   A fiber runs until it waits for others, at a barrier of its block or a collective of its warp, or ends. Then another
   one of its warp goes on, and when none of these can, another warp. Blocks run one after the other. Shared memory is
   full of rubbish when a block begins. With a seed, the order of blocks, warps and lanes is drawn anew at each step.

   `launch` returns NULL, or what went wrong, in words. What a kernel calls has the name that NVVM knows it by. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { WARP = 32, MOST_THREADS = 1024, STACK = 64 << 10, RUBBISH = 0xA5, UNDEFINED = 0xA5A5A5A5 };
enum { SHUFFLE = 0, VOTE = 4, SYNCWARP = 8 };     /* kinds of collectives; the first two have four modes each */

struct area { /* a piece of shared memory */
    char *begin;
    size_t size;
};

static struct fiber {
    int begun;
    ucontext_t start;
    jmp_buf place;
    uint32_t kind, mask, value, where; /* of its collective: which one, for whom, what it brings, whom it asks */
    uint32_t answer;                   /* what it goes on with */
} fibers[MOST_THREADS];

static struct warp {
    uint32_t ready, meeting, blocked; /* which lanes can go on, are at a collective, at a barrier: the rest has ended */
} warps[MOST_THREADS / WARP];

static jmp_buf scheduler;
static int now, threads; /* the thread that runs, and how many a block has */
static uint32_t block, blocks, dynamic_size;
static uint64_t chance; /* 0 without a seed */
static char fault[1000];
static void (*kernel)(void *);
static void *arguments;

/* --------------------------------------------------------------------------------------------------- who runs next */

static uint32_t drawn(uint32_t below) {
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    return (uint32_t)(chance >> 32) % below;
}

static void resume(int thread) {
    now = thread;
    if (fibers[thread].begun) _longjmp(fibers[thread].place, 1);
    fibers[thread].begun = 1;
    setcontext(&fibers[thread].start);
}

static int next_of(int warp, int lane) { /* the first thread from this lane on, and round, that can go on; or -1 */
    uint32_t ready = warps[warp].ready, from = ready >> lane << lane;
    return ready ? warp * WARP + __builtin_ctz(from ? from : ready) : -1;
}

static void leave(void) { /* let others go on; returns when they have let this one */
    int next = next_of(now / WARP, chance ? (int)drawn(WARP) : now % WARP);
    if (next == now || _setjmp(fibers[now].place)) return;
    if (next < 0) _longjmp(scheduler, 1);
    resume(next);
}

static void stop(const char *format, ...) { /* the whole launch, from within a fiber */
    va_list said;
    va_start(said, format);
    int length = snprintf(fault, sizeof fault, "thread %d of block %u: ", now, block);
    vsnprintf(fault + length, sizeof fault - length, format, said);
    va_end(said);
    _longjmp(scheduler, 1);
}

/* -------------------------------------------------------------------------------------------------------- meetings */

static uint32_t shuffled(uint32_t mask, int lane, const struct fiber *lanes) {
    int where = (int)lanes[lane].where, from;
    switch (lanes[lane].kind - SHUFFLE) {
        case 0: from = where % WARP; break;
        case 1: from = lane - where; break;
        case 2: from = lane + where; break;
        default: from = lane ^ where;
    }
    if (from < 0 || from >= WARP) return lanes[lane].value;
    return mask >> from & 1 ? lanes[from].value : UNDEFINED;
}

static uint32_t voted(uint32_t mask, uint32_t votes, uint32_t mode) {
    switch (mode) {
        case 0: return votes == mask;
        case 1: return votes != 0;
        case 2: return votes == mask || votes == 0;
        default: return votes;
    }
}

static int meet(int thread) { /* whether all are there that this thread waits for; if so, they go on */
    struct warp *warp = &warps[thread / WARP];
    struct fiber *me = &fibers[thread], *lanes = &fibers[thread / WARP * WARP];
    uint32_t mask = me->mask & (warp->ready | warp->meeting | warp->blocked), votes = 0;
    if (mask & ~warp->meeting) return 0;
    for (int lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1) {
            if (lanes[lane].kind != me->kind || lanes[lane].mask != me->mask) return 0;
            votes |= (uint32_t)(lanes[lane].value != 0) << lane;
        }
    for (int lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1)
            lanes[lane].answer = me->kind < VOTE ? shuffled(mask, lane, lanes) : voted(mask, votes, me->kind - VOTE);
    warp->meeting &= ~mask;
    warp->ready |= mask;
    return 1;
}

static uint32_t come(uint32_t kind, uint32_t mask, uint32_t value, uint32_t where) {
    struct fiber *me = &fibers[now];
    struct warp *warp = &warps[now / WARP];
    uint32_t lane = 1u << now % WARP;
    if (!(mask & lane)) stop("comes to a collective of the lanes %08x, and is none of them", mask);
    me->kind = kind, me->mask = mask, me->value = value, me->where = where;
    warp->ready &= ~lane, warp->meeting |= lane;
    if (!meet(now) || chance) leave();
    return me->answer;
}

static void live(void) { /* the life of a fiber: in each block the thread of its number */
    for (;;) {
        struct warp *warp = &warps[now / WARP];
        kernel(arguments);
        warp->ready &= ~(1u << now % WARP);
        for (int lane = 0; lane < WARP && warp->meeting; lane++) /* who waited for this one only goes on */
            if (warp->meeting >> lane & 1) meet(now / WARP * WARP + lane);
        leave();
    }
}

/* ----------------------------------------------------------------------------------------------- what a kernel calls */

#define AS(name) __asm__(name)
#define REGISTER(function, name, value) \
    uint32_t function(void) AS("nvvm.read.ptx.sreg." name); \
    uint32_t function(void) { return value; }
REGISTER(thread_x, "tid.x", now)
REGISTER(thread_y, "tid.y", 0)
REGISTER(thread_z, "tid.z", 0)
REGISTER(threads_x, "ntid.x", threads)
REGISTER(threads_y, "ntid.y", 1)
REGISTER(threads_z, "ntid.z", 1)
REGISTER(block_x, "ctaid.x", block)
REGISTER(block_y, "ctaid.y", 0)
REGISTER(block_z, "ctaid.z", 0)
REGISTER(blocks_x, "nctaid.x", blocks)
REGISTER(blocks_y, "nctaid.y", 1)
REGISTER(blocks_z, "nctaid.z", 1)
REGISTER(lane_of_thread, "laneid", now % WARP)
REGISTER(lanes_before, "lanemask.lt", (1u << now % WARP) - 1)
REGISTER(shared_bytes, "dynamic_smem_size", dynamic_size)

void sync_warp(uint32_t mask) AS("nvvm.bar.warp.sync");
void sync_warp(uint32_t mask) { come(SYNCWARP, mask, 0, 0); }

void sync_threads(void) AS("nvvm.barrier0");
void sync_threads(void) {
    struct warp *warp = &warps[now / WARP];
    uint32_t lane = 1u << now % WARP;
    warp->ready &= ~lane, warp->blocked |= lane;
    leave();
}

void thread_fence(void) AS("nvvm.membar.gl");
void thread_fence(void) {} /* threads run one after the other: what one has written all others see */

uint32_t shuffle(uint32_t mask, uint32_t mode, uint32_t value, uint32_t where) {
    return come(SHUFFLE + mode, mask, value, where);
}

uint32_t vote(uint32_t mask, uint32_t mode, uint32_t value) { return come(VOTE + mode, mask, value, 0); }

uint32_t first_bit(uint32_t word) AS("__nv_ffs");
uint32_t first_bit(uint32_t word) { return (uint32_t)__builtin_ffs((int)word); }

uint32_t first_bit_of_64(uint64_t word) AS("__nv_ffsll");
uint32_t first_bit_of_64(uint64_t word) { return (uint32_t)__builtin_ffsll((long long)word); }

uint32_t increment(uint32_t *place, uint32_t last) AS("nvvm.atomic.load.inc.32.p0i32");
uint32_t increment(uint32_t *place, uint32_t last) { /* and from the last on to 0 */
    uint32_t old = *place;
    *place = old < last ? old + 1 : 0;
    return old;
}

void outside(int64_t index, int64_t length) {
    stop("index %lld of an array of %lld elements", (long long)index, (long long)length);
}

/* ---------------------------------------------------------------------------------------------------------- a launch */

static void prepare(void) { /* fibers that begin anew, whatever an earlier launch left half done */
    static char *stacks;
    if (!stacks) stacks = malloc((size_t)MOST_THREADS * STACK);
    for (int thread = 0; thread < threads; thread++) {
        struct fiber *fiber = &fibers[thread];
        fiber->begun = 0;
        getcontext(&fiber->start);
        fiber->start.uc_stack.ss_sp = stacks + (size_t)thread * STACK;
        fiber->start.uc_stack.ss_size = STACK;
        makecontext(&fiber->start, live, 0);
    }
}

static void begin_block(const struct area *areas, int count) {
    for (int k = 0; k < count; k++) memset(areas[k].begin, RUBBISH, areas[k].size);
    memset(warps, 0, sizeof warps);
    for (int thread = 0; thread < threads; thread++) warps[thread / WARP].ready |= 1u << thread % WARP;
}

static int run_warps(void) { /* each as far as it gets; whether any thread could go on */
    int count = (threads + WARP - 1) / WARP, first = chance ? (int)drawn(count) : 0;
    volatile int ran = 0; /* these two are wanted after a _longjmp */
    for (volatile int k = 0; k < count && !*fault; k++) {
        int next = next_of((first + k) % count, chance ? (int)drawn(WARP) : 0);
        if (next < 0) continue;
        ran = 1;
        if (!_setjmp(scheduler)) resume(next);
    }
    return ran;
}

static int pass_barrier(void) { /* whether anyone was there */
    uint32_t passed = 0;
    for (int k = 0; k < MOST_THREADS / WARP; k++) {
        passed |= warps[k].blocked;
        warps[k].ready |= warps[k].blocked, warps[k].blocked = 0;
    }
    return passed != 0;
}

static void say_who_waits(void) { /* in a fault: the first lane of each warp at each place */
    static const char *kinds[] = {"shfl", "shfl_up", "shfl_down", "shfl_xor", "all", "any", "uni", "ballot", "syncwarp"};
    size_t length = snprintf(fault, sizeof fault, "threads of block %u wait for others in vain", block);
    for (int thread = 0; thread < threads && length < sizeof fault; thread++) {
        struct fiber *me = &fibers[thread];
        uint32_t lane = 1u << thread % WARP, before = lane - 1;
        const struct warp *warp = &warps[thread / WARP];
        int same = warp->meeting & lane >> 1 && me[-1].kind == me->kind && me[-1].mask == me->mask;
        if (warp->blocked & lane && !(warp->blocked & before))
            length += snprintf(fault + length, sizeof fault - length, "; %d at a syncthreads", thread);
        if (warp->meeting & lane && !same)
            length += snprintf(fault + length, sizeof fault - length, "; %d at a %s of the lanes %08x", thread,
                               kinds[me->kind], me->mask);
    }
}

static void run_block(void) {
    for (;;) {
        while (run_warps()) {}
        if (*fault) return;
        for (int k = 0; k < MOST_THREADS / WARP; k++)
            if (warps[k].meeting) {
                say_who_waits();
                return;
            }
        if (!pass_barrier()) return; /* all have ended */
    }
}

const char *launch(void (*run)(void *), void *with, uint32_t grid, int width, uint32_t dynamic, const struct area *areas,
                   int count, uint64_t seed) {
    kernel = run, arguments = with, blocks = grid, threads = width, dynamic_size = dynamic, chance = seed;
    *fault = 0;
    prepare();
    uint32_t first = chance ? drawn(blocks) : 0;
    int backwards = chance && drawn(2);
    for (uint32_t k = 0; k < blocks && !*fault; k++) {
        uint32_t other = (uint32_t)(((uint64_t)first + k) % blocks);
        block = backwards ? blocks - 1 - other : other;
        begin_block(areas, count);
        run_block();
    }
    return *fault ? fault : NULL;
}
