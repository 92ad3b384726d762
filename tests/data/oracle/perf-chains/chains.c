/* Known call chains: which functions run and which sleep. Without a C library, with frame pointers:
 * clang -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -nostdlib -static -Wl,--build-id -o chains chains.c
 */
typedef unsigned long word;

static long call(long number, word a, word b, word c, word d) {
    long result;
    register word r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}

#define NOINLINE __attribute__((noinline))

static volatile word sink;

static NOINLINE void leaf(word rounds) {
    for (word round = 0; round < rounds; round++)
        sink += round * round;
}

static NOINLINE void burns_much(void) { leaf(30000000); sink++; }
static NOINLINE void burns_little(void) { leaf(10000000); sink++; }

static NOINLINE void naps(long nanoseconds) {
    long time[2] = {0, nanoseconds};
    call(35 /* nanosleep */, (word)time, 0, 0, 0);
    sink++;
}

static NOINLINE void works(void) {
    burns_much();
    burns_little();
    for (int nap = 0; nap < 5; nap++)
        naps(2000000);
    sink++;
}

static NOINLINE void child(void) { burns_little(); naps(3000000); sink++; }

static NOINLINE void parent(void) {
    works();
    long pid = call(57 /* fork */, 0, 0, 0, 0);
    if (pid == 0) {
        child();
        call(231 /* exit_group */, 0, 0, 0, 0);
    }
    call(61 /* wait4 */, (word)pid, 0, 0, 0);
    sink++;
}

__attribute__((used, noreturn, force_align_arg_pointer)) static void start(void) {
    parent();
    call(231, 0, 0, 0, 0);
    __builtin_unreachable();
}

__asm__(".global _start\n_start: xor %ebp, %ebp\n call start\n");
