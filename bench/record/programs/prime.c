/* Counts primes by division: computes, and makes no system call. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	unsigned most = argc > 1 ? (unsigned)atoi(argv[1]) : 2000000, count = 0;
	for (unsigned n = 2; n < most; n++) {
		unsigned divisor = 2;
		while (divisor * divisor <= n && n % divisor)
			divisor++;
		count += divisor * divisor > n;
	}
	printf("%u\n", count);
}
