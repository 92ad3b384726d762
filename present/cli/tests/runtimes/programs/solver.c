/* The tasks of a right-looking factorization of 8 columns, each of which only uses the CPU, for longer
 * than a time slice of the kernel's scheduler. */
#include <time.h>

static void compute(int us)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

int main(void)
{
	char column[8];
#pragma omp parallel num_threads(2)
#pragma omp single
	for (int k = 0; k < 8; k++) {
#pragma omp task depend(inout : column[k])
		compute(8000);
		for (int j = k + 1; j < 8; j++) {
#pragma omp task depend(in : column[k]) depend(inout : column[j])
			compute(4000);
		}
	}
	return 0;
}
