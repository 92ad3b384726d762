/* Takes pages of memory and gives them back: 64 pages touched, a file of 16 pages, a child. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	size_t length = 64 * 4096;
	char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char page[4096];
	char name[] = "/tmp/pagesXXXXXX";
	int fd = mkstemp(name);
	for (size_t at = 0; at < length; at += 4096)
		memory[at] = 1;
	memset(page, 7, sizeof page);
	for (int count = 0; count < 16; count++)
		if (write(fd, page, sizeof page) < 0)
			return 1;
	if (fork() == 0) {
		for (size_t at = 0; at < length / 2; at += 4096)
			memory[at] = 2;
		_exit(0);
	}
	wait(NULL);
	close(fd);
	unlink(name);
	munmap(memory, length);
	return 0;
}
