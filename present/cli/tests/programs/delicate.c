/* Does N times each what a recorder may disturb: programs that execute others by raw system calls, sandboxes that kill,
 * closed descriptors, signal handlers that come and go, other roots and users. Prints how each child ended, so that two
 * runs print the same unless the recorder changed the result. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *self;
static char *root;

static void burn_us(long us) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  long end = now.tv_sec * 1000000 + now.tv_nsec / 1000 + us;
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while (now.tv_sec * 1000000 + now.tv_nsec / 1000 < end);
}

static void doze(void) {
  struct timespec pause = {0, 200000};
  nanosleep(&pause, NULL);
}

/* A system call that the C library does not wrap. */
static long raw(long number, long a, long b, long c, long d, long e) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
}

static char *arguments[] = {"delicate", "child", NULL};
static char *environment[] = {"A=b", NULL};

static void by_execve(void) {
  raw(SYS_execve, (long)self, (long)arguments, (long)environment, 0, 0);
}

static void by_execveat(void) {
  int file = open(self, O_PATH | O_CLOEXEC);
  raw(SYS_execveat, file, (long)"", (long)arguments, (long)environment, AT_EMPTY_PATH);
}

static void by_vfork(void) {
  int status;
  pid_t child = vfork();
  if (child == 0) {
    raw(SYS_execve, (long)self, (long)arguments, (long)environment, 0, 0);
    _exit(99);
  }
  waitpid(child, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

/* Allows only the system calls that this program makes from here on. */
static void sandbox(unsigned otherwise) {
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(SYS_nanosleep),
      ALLOW(SYS_clock_nanosleep),
      ALLOW(SYS_clock_gettime),
      ALLOW(SYS_rt_sigreturn),
      ALLOW(SYS_exit_group),
      BPF_STMT(BPF_RET | BPF_K, otherwise),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  burn_us(300);
  doze();
  _exit(24);
}

static void killing(void) { sandbox(SECCOMP_RET_KILL_PROCESS); }
static void refusing(void) { sandbox(SECCOMP_RET_ERRNO | EPERM); }
static void trapping(void) { sandbox(SECCOMP_RET_TRAP); }

static void closing(void) {
  raw(SYS_close_range, 3, ~0U, 0, 0, 0);
  burn_us(300);
  doze();
  /* The lowest descriptor is free: no other code has opened one since. */
  _exit(open("/dev/null", O_RDONLY) == 3 ? 25 : 97);
}

static volatile sig_atomic_t traps;
static void on_trap(int signal) { traps += signal == SIGTRAP; }

static void handling(void) {
  struct sigaction own = {.sa_handler = on_trap}, before;
  sigaction(SIGTRAP, &own, &before);
  raise(SIGTRAP);
  burn_us(300);
  signal(SIGTRAP, SIG_DFL);
  burn_us(300);
  doze();
  _exit(traps == 1 && before.sa_handler == SIG_DFL ? 26 : 96);
}

static void breaking(void) {
  __asm__ volatile("int3");
  _exit(95);
}

static void rooted(void) {
  if (chroot(root) || chdir("/")) _exit(94);
  burn_us(200);
  execve("/delicate", arguments, environ);
  _exit(93);
}

static void other_user(void) {
  if (setgid(65534) || setuid(65534)) _exit(92);
  burn_us(200);
  doze();
  raw(SYS_execve, (long)"/bin/true", (long)arguments, (long)environment, 0, 0);
  _exit(91);
}

static const struct {
  const char *name;
  void (*run)(void);
} kinds[] = {
    {"execve", by_execve}, {"execveat", by_execveat},   {"vfork", by_vfork},       {"kill", killing},
    {"errno", refusing},   {"trap", trapping},          {"close_range", closing},  {"handler", handling},
    {"int3", breaking},    {"chroot", rooted},          {"setuid", other_user},
};

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "child")) {
    burn_us(100);
    doze();
    return 42;
  }
  if (argc < 4) return 2;
  self = realpath(argv[1], NULL);
  root = argv[2];
  long rounds = atol(argv[3]);
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    int counts[1 << 16] = {0};
    for (long round = 0; round < rounds; round++) {
      int status;
      fflush(stdout);
      pid_t child = fork();
      if (child == 0) kinds[kind].run();
      waitpid(child, &status, 0);
      counts[status & 0xffff]++;
    }
    printf("%s:", kinds[kind].name);
    for (int status = 0; status < 1 << 16; status++)
      if (counts[status]) printf(" %#x x %d", status, counts[status]);
    printf("\n");
  }
  return 7;
}
